import { maxNodeScore } from "../framework/extension-points.ts";

/** Scales scores so that the largest becomes 100; `reverse` then inverts them. Source: plugins/helper/normalize_score.go */
export function normalizeByLargest(scores: number[], reverse: boolean): void {
  const largest = scores.reduce((most, score) => Math.max(most, score), 0);
  for (let i = 0; i < scores.length; i++) {
    const scaled = largest === 0 ? 0 : Math.trunc((maxNodeScore * scores[i]!) / largest);
    scores[i] = reverse ? maxNodeScore - scaled : scaled;
  }
}
