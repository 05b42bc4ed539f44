/**
 * Verifies a client's certificate against a bundle of authorities, as Go's crypto/x509 does for client usage: a chain
 * of signatures to one of them, every certificate inside its time, none limited to other uses or a shorter chain. TLS
 * itself accepts any certificate, so that a wrong one is answered 401 and not a closed connection.
 */
import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { type Clock, realClock } from "../../clock/clock.ts";
import { expiryText } from "../../errors/certificate-expiry.ts";
import { pathLengthOf } from "../certificate-fields.ts";
import { watchFiles } from "../file-watch.ts";

const clientAuth = "1.3.6.1.5.5.7.3.2";
const anyUsage = "2.5.29.37.0";
const longestChain = 8;

export interface CertificatePool {
  /** The bundle as PEM, for others who need to trust the same authorities. */
  readonly pem: string;
  /** Another number whenever the authorities are others. */
  readonly version: number;
  /** @throws Error with the reason. @returns milliseconds since the epoch until which the verdict holds. */
  verifyClient(leaf: X509Certificate, now: number): number;
}

/** @throws Error when there is no certificate in it. */
export function newCertificatePool(
  bundle: string,
  what: string,
): CertificatePool & { /** Ends in an error, and changes nothing, when the bundle is none. */ replace(bundle: string): void } {
  let pem = bundle;
  let authorities = parseBundle(bundle, what);
  let version = 1;
  return {
    get pem() {
      return pem;
    },
    get version() {
      return version;
    },
    verifyClient: (leaf, now) => verifyClient(leaf, authorities, now),
    replace(next) {
      if (next === pem) return;
      authorities = parseBundle(next, what);
      pem = next;
      version++;
    },
  };
}

export interface WatchedCertificatePool extends CertificatePool {
  close(): void;
}

/**
 * The file is read again when it changes; what is half written, or gone, leaves what was good.
 * @param changed called after the authorities changed
 * @throws Error when it cannot be read or holds no certificate.
 */
export function watchedCertificatePool(
  path: string,
  changed: () => void = () => {},
  clock: Clock = realClock,
): WatchedCertificatePool {
  const pool = newCertificatePool(readFileSync(path, "utf8"), path);
  const reread = (): void => {
    const before = pool.version;
    try {
      pool.replace(readFileSync(path, "utf8"));
    } catch {
      return; // the next change brings the rest
    }
    if (pool.version !== before) changed();
  };
  const watcher = watchFiles([path], reread, clock);
  return {
    get pem() {
      return pool.pem;
    },
    get version() {
      return pool.version;
    },
    verifyClient: pool.verifyClient,
    close: () => watcher.close(),
  };
}

export function parseBundle(pem: string, what: string): X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0) throw new Error(`${what}: data does not contain any valid RSA or ECDSA certificates`);
  return blocks.map((block) => new X509Certificate(block));
}

export function verifyClient(leaf: X509Certificate, authorities: readonly X509Certificate[], now: number): number {
  checkUsage(leaf);
  let current = leaf;
  let validUntil = checkTime(leaf, now);
  for (let intermediates = 0; intermediates < longestChain; intermediates++) {
    for (const authority of authorities) {
      if (!maySign(authority, current, intermediates) || !isInTime(authority, now)) continue;
      return Math.min(validUntil, Date.parse(authority.validTo));
    }
    // What the client sent along as intermediates.
    const issuer = current.issuerCertificate;
    if (issuer === undefined || issuer.fingerprint256 === current.fingerprint256) break;
    if (!maySign(issuer, current, intermediates)) break;
    validUntil = Math.min(validUntil, checkTime(issuer, now));
    current = issuer;
  }
  throw new Error("x509: certificate signed by unknown authority");
}

function checkUsage(leaf: X509Certificate): void {
  if (!isForClients(leaf)) throw new Error("x509: certificate specifies an incompatible key usage");
}

function isForClients(certificate: X509Certificate): boolean {
  const usages = certificate.keyUsage as string[] | undefined; // extended key usages, by OID
  return usages === undefined || usages.length === 0 || usages.includes(clientAuth) || usages.includes(anyUsage);
}

/** @param below how many intermediates already stand between the issuer and the leaf */
function maySign(issuer: X509Certificate, certificate: X509Certificate, below: number): boolean {
  if (!issuer.ca || !isForClients(issuer) || !certificate.checkIssued(issuer)) return false;
  const longest = pathLengthOf(issuer);
  return (longest === undefined || below <= longest) && certificate.verify(issuer.publicKey);
}

function isInTime(certificate: X509Certificate, now: number): boolean {
  return now >= Date.parse(certificate.validFrom) && now <= Date.parse(certificate.validTo);
}

function checkTime(certificate: X509Certificate, now: number): number {
  const fault = expiryText(certificate, now);
  if (fault !== undefined) throw new Error(`x509: ${fault}`);
  return Date.parse(certificate.validTo);
}
