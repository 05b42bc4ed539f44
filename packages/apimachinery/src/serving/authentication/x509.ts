/**
 * Client certificates signed by --client-ca-file: the user is the CommonName, the groups are all Organizations.
 * Source: k8s.io/apiserver pkg/authentication/request/x509/x509.go
 */
import type { X509Certificate } from "node:crypto";
import type { TLSSocket } from "node:tls";
import type { Clock } from "../../clock/clock.ts";
import { subjectOf } from "../certificates.ts";
import type { AuthenticationResult, Authenticator } from "./authenticator.ts";
import type { CertificatePool } from "./certificate-pool.ts";

/** @throws Error when there is a certificate that the authority did not sign, or not for this, or not for now. */
export function x509(pool: CertificatePool, clock: Clock): Authenticator {
  // A connection keeps its certificate: what was checked once holds until the chain expires.
  const known = new WeakMap<TLSSocket, { result: AuthenticationResult | undefined; validUntil: number }>();
  return async (exchange) => {
    const { tls } = exchange;
    if (tls === undefined) return undefined;
    const now = clock.now();
    const before = known.get(tls);
    if (before !== undefined && now <= before.validUntil) return before.result;
    const leaf = peerCertificate(tls);
    if (leaf === undefined) {
      known.set(tls, { result: undefined, validUntil: Number.POSITIVE_INFINITY });
      return undefined;
    }
    const validUntil = pool.verifyClient(leaf, now);
    const { commonName, organizations } = subjectOf(leaf);
    const result = commonName === "" ? undefined : { user: { name: commonName, groups: organizations } };
    known.set(tls, { result, validUntil: Math.min(validUntil, now + recheckMs) });
    return result;
  };
}

/** A changed bundle takes effect on open connections too. */
const recheckMs = 60_000;

export function peerCertificate(tls: TLSSocket): X509Certificate | undefined {
  return tls.getPeerX509Certificate?.();
}
