/** What keeping reasons may add to a daemon's CPU time. */
export const mostShare = 0.02;

/** Mean of the differences of pairs of rounds, and twice its standard error. */
export function estimateOf(shares: readonly number[]): { share: number; error: number } {
  const share = shares.reduce((sum, one) => sum + one, 0) / shares.length;
  const variance = shares.reduce((sum, one) => sum + (one - share) ** 2, 0) / Math.max(1, shares.length - 1);
  return { share, error: shares.length < 2 ? Number.POSITIVE_INFINITY : 2 * Math.sqrt(variance / shares.length) };
}

/** Rounds that differ by more than the limit show nothing: neither that it is kept nor that it is exceeded. */
export function verdictOf(shares: readonly number[]): "ok" | "NOT OK" | "not shown, take more rounds on an idle machine" {
  const { share, error } = estimateOf(shares);
  if (share + error <= mostShare) return "ok";
  return share - error > mostShare ? "NOT OK" : "not shown, take more rounds on an idle machine";
}
