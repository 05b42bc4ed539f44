import type { Plugin } from "../framework/extension-points.ts";

/** Higher priority first, then earlier enqueue time. */
export const newPrioritySort = (): Plugin => ({
  name: "PrioritySort",
  compare: (a, b) => (b.pod.spec.priority ?? 0) - (a.pod.spec.priority ?? 0) || a.queuedAtMs - b.queuedAtMs,
});
