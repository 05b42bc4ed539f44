export interface Validity {
  readonly notBefore: Date;
  readonly notAfter: Date;
}

const minuteMs = 60_000;
/** Clocks of nodes differ a little. */
const backdateMs = 5 * minuteMs;
/** Five minutes would be much of so short a life: it is not cut at its end. */
const shortMs = 8 * 60 * minuteMs;
const leastMs = 10 * minuteMs;

/**
 * Pure: how long a certificate is good: what was asked for, between ten minutes and `longestMs`, never longer than its
 * signer.
 * @throws Error when the signer is no longer good itself
 * Source: pkg/controller/certificates/signer/signer.go duration; authority/policies.go
 */
export function validityOf(options: {
  readonly askedSeconds: number | undefined;
  readonly longestMs: number;
  readonly signerNotAfter: Date;
  readonly now: number;
}): Validity {
  const { askedSeconds, longestMs, signerNotAfter, now } = options;
  const askedMs = askedSeconds === undefined ? longestMs : askedSeconds * 1000;
  const lifeMs = askedMs >= longestMs ? longestMs : Math.max(askedMs, leastMs);
  const end = now + (lifeMs < shortMs ? lifeMs : lifeMs - backdateMs);
  const signerEnd = signerNotAfter.getTime();
  const said = `NotAfter=${signerNotAfter.toISOString()}`;
  if (now - backdateMs >= signerEnd) throw new Error(`the signer has expired: ${said}`);
  if (now >= signerEnd) throw new Error(`refusing to sign a certificate that expired in the past: ${said}`);
  return { notBefore: new Date(now - backdateMs), notAfter: new Date(Math.min(end, signerEnd)) };
}
