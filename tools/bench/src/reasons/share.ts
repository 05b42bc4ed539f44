/** Maximum share of a daemon's CPU time that recording reasons may add. */
export const mostShare = 0.02;

interface Estimate {
  readonly share: number;
  /** Twice the standard error. */
  readonly error: number;
}

/** Mean of the values of pairs of rounds, with its error. */
export function estimateOf(values: readonly number[]): Estimate {
  const share = values.reduce((sum, one) => sum + one, 0) / values.length;
  const variance = values.reduce((sum, one) => sum + (one - share) ** 2, 0) / Math.max(1, values.length - 1);
  return { share, error: values.length < 2 ? Number.POSITIVE_INFINITY : 2 * Math.sqrt(variance / values.length) };
}

/** Share of the busy samples of a profile that are `within` the searched files. */
export function sampledShare({ busy, within }: { readonly busy: number; readonly within: number }): Estimate {
  if (busy === 0) return { share: 0, error: Number.POSITIVE_INFINITY };
  // One sample is added, because zero observed samples do not prove a share of zero.
  return { share: within / busy, error: (2 * Math.sqrt(within + 1)) / busy };
}

type Verdict = "ok" | "NOT OK" | "not shown, take more rounds on an idle machine";

/** Inconclusive when the limit lies within the error of the share. */
export function verdictOf({ share, error }: Estimate): Verdict {
  if (share + error <= mostShare) return "ok";
  return share - error > mostShare ? "NOT OK" : "not shown, take more rounds on an idle machine";
}
