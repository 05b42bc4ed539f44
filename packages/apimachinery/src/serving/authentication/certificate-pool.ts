/**
 * Verifies a client's certificate against a bundle of authorities, as Go's crypto/x509 does for client usage: a chain
 * of signatures to one of them, every certificate inside its time, the leaf not limited to other uses. TLS itself
 * accepts any certificate, so that a wrong one is answered 401 and not a closed connection.
 */
import { X509Certificate } from "node:crypto";
import { readFileSync, unwatchFile, watchFile } from "node:fs";

const clientAuth = "1.3.6.1.5.5.7.3.2";
const anyUsage = "2.5.29.37.0";
const longestChain = 8;

export interface CertificatePool {
  /** The bundle as PEM, for others who need to trust the same authorities. */
  readonly pem: string;
  /** @throws Error with the reason. @returns milliseconds since the epoch until which the verdict holds. */
  verifyClient(leaf: X509Certificate, now: number): number;
  close(): void;
}

/** The file is read again when it changes. @throws Error when it cannot be read or holds no certificate. */
export function certificatePool(path: string): CertificatePool {
  let { pem, authorities } = load(path);
  const reread = (): void => {
    try {
      ({ pem, authorities } = load(path));
    } catch {
      // Half written: the next change brings the rest. Until then what was good stays.
    }
  };
  watchFile(path, { interval: 60_000, persistent: false }, reread);
  return {
    get pem() {
      return pem;
    },
    verifyClient: (leaf, now) => verifyClient(leaf, authorities, now),
    close: () => unwatchFile(path, reread),
  };
}

function load(path: string): { pem: string; authorities: X509Certificate[] } {
  const pem = readFileSync(path, "utf8");
  return { pem, authorities: parseBundle(pem, path) };
}

export function parseBundle(pem: string, what: string): X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0) throw new Error(`${what}: data does not contain any valid RSA or ECDSA certificates`);
  return blocks.map((block) => new X509Certificate(block));
}

export function verifyClient(leaf: X509Certificate, authorities: readonly X509Certificate[], now: number): number {
  const usages = leaf.keyUsage as string[] | undefined; // extended key usages, by OID
  if (usages !== undefined && usages.length > 0 && !usages.includes(clientAuth) && !usages.includes(anyUsage)) {
    throw new Error("x509: certificate specifies an incompatible key usage");
  }
  let current = leaf;
  let validUntil = checkTime(leaf, now);
  for (let depth = 0; depth < longestChain; depth++) {
    for (const authority of authorities) {
      if (!isIssuedBy(current, authority) || !isInTime(authority, now)) continue;
      return Math.min(validUntil, Date.parse(authority.validTo));
    }
    // What the client sent along as intermediates.
    const issuer = current.issuerCertificate;
    if (issuer === undefined || issuer.fingerprint256 === current.fingerprint256 || !isIssuedBy(current, issuer)) break;
    validUntil = Math.min(validUntil, checkTime(issuer, now));
    current = issuer;
  }
  throw new Error("x509: certificate signed by unknown authority");
}

function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  return issuer.ca && certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
}

function isInTime(certificate: X509Certificate, now: number): boolean {
  return now >= Date.parse(certificate.validFrom) && now <= Date.parse(certificate.validTo);
}

function checkTime(certificate: X509Certificate, now: number): number {
  if (!isInTime(certificate, now)) throw new Error("x509: certificate has expired or is not yet valid");
  return Date.parse(certificate.validTo);
}
