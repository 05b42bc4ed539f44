/**
 * Authentication by client certificate: the user is the CommonName, the groups are all Organizations.
 * Source: k8s.io/apiserver pkg/authentication/request/x509/x509.go
 */
import type { X509Certificate } from "node:crypto";
import type { TLSSocket } from "node:tls";
import type { Clock } from "../../clock/clock.ts";
import { subjectOf } from "../certificate-fields.ts";
import type { AuthenticationResult, Authenticator } from "./authenticator.ts";
import type { CertificatePool } from "./certificate-pool.ts";

interface Verdict {
  /** End of the certificate's validity, in milliseconds since the epoch; undefined without a certificate. */
  readonly expiresMs: number | undefined;
  readonly result: AuthenticationResult | undefined;
  readonly untilMs: number;
  readonly pool: CertificatePool;
  readonly version: number;
}

/**
 * @param poolOf returns the current authorities; undefined: certificates are ignored
 * @param observe called for each request with the remaining validity of its certificate in seconds, negative when expired
 * @throws Error for a certificate that is untrusted, unsuitable for clients or outside its validity period
 */
export function x509(
  poolOf: () => CertificatePool | undefined,
  clock: Clock,
  observe?: (remainingSeconds: number) => void,
): Authenticator {
  const observed = (expiresMs: number | undefined, now: number): void => {
    if (expiresMs !== undefined) observe?.((expiresMs - now) / 1000);
  };
  // A connection's certificate does not change: a verdict holds until the chain expires or the authorities change.
  const known = new WeakMap<TLSSocket, Verdict>();
  return async ({ tls }) => {
    const pool = poolOf();
    if (tls === undefined || pool === undefined) return undefined;
    const now = clock.now();
    const before = known.get(tls);
    if (before !== undefined && before.pool === pool && before.version === pool.version && now <= before.untilMs) {
      observed(before.expiresMs, now);
      return before.result;
    }
    const { version } = pool;
    const leaf = peerCertificate(tls);
    const expiresMs = leaf && Date.parse(leaf.validTo);
    observed(expiresMs, now);
    const untilMs = leaf === undefined ? Number.POSITIVE_INFINITY : pool.verifyClient(leaf, now);
    const result = leaf === undefined ? undefined : userOf(leaf);
    known.set(tls, { expiresMs, result, untilMs, pool, version });
    return result;
  };
}

function userOf(leaf: X509Certificate): AuthenticationResult | undefined {
  const { commonName, organizations } = subjectOf(leaf);
  return commonName === "" ? undefined : { user: { name: commonName, groups: organizations } };
}

export function peerCertificate(tls: TLSSocket): X509Certificate | undefined {
  return tls.getPeerX509Certificate?.();
}
