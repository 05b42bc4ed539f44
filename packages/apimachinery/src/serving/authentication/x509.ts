import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import type { TLSSocket } from "node:tls";
import { expiryText } from "../../objects/errors/certificate-expiry.ts";
import { type Clock, realClock } from "../../process/clock/clock.ts";
import { pathLengthOf, subjectOf } from "../certificate-fields.ts";
import { watchFiles } from "../file-watch.ts";
import type { AuthenticationResult, Authenticator } from "./authenticator.ts";

/**
 * Authentication by client certificate: the user is the CommonName, the groups are all Organizations.
 * Source: k8s.io/apiserver pkg/authentication/request/x509/x509.go
 */

interface Verdict {
  /** End of the certificate's validity, in milliseconds since the epoch; undefined without a certificate. */
  readonly expiresMs: number | undefined;
  readonly result: AuthenticationResult | undefined;
  readonly untilMs: number;
  readonly pool: CertificatePool;
  readonly version: number;
}

/**
 * @param trust has the current authorities; undefined: certificates are ignored
 * @param observe called for each request with the remaining validity of its certificate in seconds, negative when expired
 * @throws Error for a certificate that is untrusted, unsuitable for clients or outside its validity period
 */
export function x509(
  trust: { readonly clientCa: CertificatePool | undefined },
  clock: Clock,
  observe?: (remainingSeconds: number) => void,
): Authenticator {
  const observed = (expiresMs: number | undefined, now: number): void => {
    if (expiresMs !== undefined) observe?.((expiresMs - now) / 1000);
  };
  // A connection's certificate does not change: a verdict holds until the chain expires or the authorities change.
  const known = new WeakMap<TLSSocket, Verdict>();
  // Clients such as kubectl, and API servers that run commands on a node, have a connection for each request.
  const recent = new Map<string, Verdict>();
  const verify = (leaf: X509Certificate, pool: CertificatePool, now: number): Verdict => {
    const expiresMs = Date.parse(leaf.validTo);
    observed(expiresMs, now);
    const { version } = pool;
    const untilMs = pool.verifyClient(leaf, now);
    return { expiresMs, result: userOf(leaf), untilMs, pool, version };
  };
  return async ({ tls }) => {
    const pool = trust.clientCa;
    if (tls === undefined || pool === undefined) return undefined;
    const now = clock.now();
    const holds = (verdict: Verdict | undefined): verdict is Verdict =>
      verdict !== undefined && verdict.pool === pool && verdict.version === pool.version && now <= verdict.untilMs;
    let verdict = known.get(tls);
    if (holds(verdict)) {
      observed(verdict.expiresMs, now);
      return verdict.result;
    }
    const leaf = peerCertificate(tls);
    const chain = leaf === undefined ? "" : fingerprintsOf(leaf);
    verdict = recent.get(chain);
    if (holds(verdict)) observed(verdict.expiresMs, now);
    else if (leaf === undefined) verdict = { ...withoutCertificate, pool, version: pool.version };
    else {
      verdict = verify(leaf, pool, now);
      recent.delete(chain);
      recent.set(chain, verdict);
      if (recent.size > mostRecent) recent.delete(recent.keys().next().value ?? "");
    }
    known.set(tls, verdict);
    return verdict.result;
  };
}

const withoutCertificate = { expiresMs: undefined, result: undefined, untilMs: Number.POSITIVE_INFINITY };

/** Verified certificates whose verdict is kept for further connections. */
const mostRecent = 256;

/** Of the certificate and those that the client sent with it: what a verdict depends on. */
function fingerprintsOf(leaf: X509Certificate): string {
  const all = [leaf.fingerprint256];
  let issuer = leaf.issuerCertificate;
  for (; issuer !== undefined && all.length <= longestChain; issuer = issuer.issuerCertificate) {
    if (issuer.fingerprint256 === all.at(-1)) break;
    all.push(issuer.fingerprint256);
  }
  return all.join();
}

function userOf(leaf: X509Certificate): AuthenticationResult | undefined {
  const { commonName, organizations } = subjectOf(leaf);
  return commonName === "" ? undefined : { user: { name: commonName, groups: organizations } };
}

/** A pure cache: Node makes another object at each call. */
const peerCertificates = new WeakMap<TLSSocket, X509Certificate>();

/** The client's certificate, not verified; undefined without one, and for connections without TLS. */
export function peerCertificate(tls: TLSSocket): X509Certificate | undefined {
  const known = peerCertificates.get(tls);
  if (known !== undefined) return known;
  const certificate = tls.getPeerX509Certificate?.();
  if (certificate !== undefined) peerCertificates.set(tls, certificate);
  return certificate;
}

/**
 * Verifies client certificates against a CA bundle, as Go's crypto/x509 does for client usage: a chain of signatures to one of
 * the authorities, every certificate within its validity period, and no conflicting key usage or path length. The TLS layer
 * accepts any certificate, so that an invalid one is answered with 401 instead of a closed connection.
 */

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
  const usages: string[] | undefined = certificate.keyUsage; // extended key usages, by OID
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
