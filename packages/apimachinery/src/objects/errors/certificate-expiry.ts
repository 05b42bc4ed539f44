import type { X509Certificate } from "node:crypto";

/** The subject on one line, e.g. `O=system:masters, CN=kubernetes-admin`. */
const subjectText = (certificate: X509Certificate): string => (certificate.subject ?? "").split("\n").join(", ");

/** RFC 3339 without fraction, e.g. `2026-01-02T03:04:05Z`. */
const secondsText = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");

/**
 * Error text of Go's crypto/x509 for a certificate that is not valid at the given time, with its subject.
 * @param file file with the certificate, for the text
 * @returns undefined when the certificate is valid
 */
export function expiryText(certificate: X509Certificate, nowMs: number, file?: string): string | undefined {
  const from = Date.parse(certificate.validFrom);
  const to = Date.parse(certificate.validTo);
  if (nowMs >= from && nowMs <= to) return undefined;
  const why =
    nowMs > to
      ? `current time ${secondsText(nowMs)} is after ${secondsText(to)}`
      : `current time ${secondsText(nowMs)} is before ${secondsText(from)}`;
  const which = [`subject ${subjectText(certificate)}`, ...(file === undefined ? [] : [`file ${file}`])].join(", ");
  return `certificate has expired or is not yet valid: ${why} (${which})`;
}

/** `expiryText` of the first certificate in the chain that is not valid at the given time; undefined when all are. */
export function expiredOf(leaf: X509Certificate | undefined, nowMs: number): string | undefined {
  let current = leaf;
  for (let depth = 0; current !== undefined && depth < 10; depth++) {
    const text = expiryText(current, nowMs);
    if (text !== undefined) return text;
    const issuer: X509Certificate | undefined = current.issuerCertificate;
    current = issuer?.fingerprint256 === current.fingerprint256 ? undefined : issuer;
  }
  return undefined;
}
