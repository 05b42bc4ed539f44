/** What keeping reasons may add to a daemon's CPU time. */
export const mostShare = 0.02;

interface Estimate {
  readonly share: number;
  /** Twice the standard error. */
  readonly error: number;
}

/** Of values of pairs of rounds. */
export function estimateOf(values: readonly number[]): Estimate {
  const share = values.reduce((sum, one) => sum + one, 0) / values.length;
  const variance = values.reduce((sum, one) => sum + (one - share) ** 2, 0) / Math.max(1, values.length - 1);
  return { share, error: values.length < 2 ? Number.POSITIVE_INFINITY : 2 * Math.sqrt(variance / values.length) };
}

/** Of samples of a profile, `within` of which belong to what is looked for. */
export function sampledShare({ busy, within }: { readonly busy: number; readonly within: number }): Estimate {
  if (busy === 0) return { share: 0, error: Number.POSITIVE_INFINITY };
  // As if there was one sample more: none is no proof of none.
  return { share: within / busy, error: (2 * Math.sqrt(within + 1)) / busy };
}

type Verdict = "ok" | "NOT OK" | "not shown, take more rounds on an idle machine";

/** An error above the limit shows nothing: neither that it is kept nor that it is exceeded. */
export function verdictOf({ share, error }: Estimate): Verdict {
  if (share + error <= mostShare) return "ok";
  return share - error > mostShare ? "NOT OK" : "not shown, take more rounds on an idle machine";
}
