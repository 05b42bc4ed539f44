interface Validity {
  readonly notBefore: Date;
  readonly notAfter: Date;
}

const minuteMs = 60_000;
/** Backdating tolerates clock skew of nodes. */
const backdateMs = 5 * minuteMs;
/** For certificates shorter than this the backdating is not subtracted from the lifetime. */
const shortMs = 8 * 60 * minuteMs;
const leastMs = 10 * minuteMs;

/**
 * Pure: computes the validity: the requested duration, at least ten minutes and at most `longestMs`, and not beyond
 * the signer's.
 * @throws Error when the signer's certificate has expired
 * Source: pkg/controller/certificates/signer/signer.go duration; authority/policies.go
 */
export function validityOf(options: {
  readonly requestedSeconds: number | undefined;
  readonly longestMs: number;
  readonly signerNotAfter: Date;
  readonly now: number;
}): Validity {
  const { requestedSeconds, longestMs, signerNotAfter, now } = options;
  const requestedMs = requestedSeconds === undefined ? longestMs : requestedSeconds * 1000;
  const lifeMs = requestedMs >= longestMs ? longestMs : Math.max(requestedMs, leastMs);
  const end = now + (lifeMs < shortMs ? lifeMs : lifeMs - backdateMs);
  const signerEnd = signerNotAfter.getTime();
  const said = `NotAfter=${signerNotAfter.toISOString()}`;
  if (now - backdateMs >= signerEnd) throw new Error(`the signer has expired: ${said}`);
  if (now >= signerEnd) throw new Error(`refusing to sign a certificate that expired in the past: ${said}`);
  return { notBefore: new Date(now - backdateMs), notAfter: new Date(Math.min(end, signerEnd)) };
}
