/**
 * Verifies client certificates against a CA bundle, as Go's crypto/x509 does for client usage: a chain of signatures to one of
 * the authorities, every certificate within its validity period, and no conflicting key usage or path length. The TLS layer
 * accepts any certificate, so that an invalid one is answered with 401 instead of a closed connection.
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
  /** The bundle as PEM, for others that trust the same authorities. */
  readonly pem: string;
  /** Changes whenever the authorities change. */
  readonly version: number;
  /**
   * @returns milliseconds since the epoch until which the verdict holds
   * @throws Error with the reason
   */
  verifyClient(leaf: X509Certificate, now: number): number;
}

/**
 * @param what names the bundle in error messages
 * @throws Error when the bundle contains no certificate
 */
export function newCertificatePool(
  bundle: string,
  what: string,
): CertificatePool & { /** @throws Error for an invalid bundle; the old one stays */ replace(bundle: string): void } {
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
 * A pool that follows a file. While the file is incomplete, invalid or missing, the last valid authorities stay in force.
 * @param changed called after the authorities changed
 * @throws Error when the file cannot be read or contains no certificate
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
      return; // partially written; another event follows
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

/** @throws Error when the text contains no certificate */
export function parseBundle(pem: string, what: string): X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0) throw new Error(`${what}: data does not contain any valid RSA or ECDSA certificates`);
  return blocks.map((block) => new X509Certificate(block));
}

/**
 * @param now milliseconds since the epoch
 * @returns until when the verdict holds, in milliseconds since the epoch
 * @throws Error with the reason
 */
export function verifyClient(leaf: X509Certificate, authorities: readonly X509Certificate[], now: number): number {
  checkUsage(leaf);
  let current = leaf;
  let validUntil = checkTime(leaf, now);
  for (let intermediates = 0; intermediates < longestChain; intermediates++) {
    for (const authority of authorities) {
      if (!maySign(authority, current, intermediates) || !isInTime(authority, now)) continue;
      return Math.min(validUntil, Date.parse(authority.validTo));
    }
    // Intermediates that the client sent.
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

/** @param below number of intermediates between the issuer and the leaf */
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
