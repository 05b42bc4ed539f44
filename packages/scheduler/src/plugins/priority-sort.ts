import type { Plugin } from "../framework/extension-points.ts";

/** The pod of higher priority first; among equals the one that has waited longer. */
export const newPrioritySort = (): Plugin => ({
  name: "PrioritySort",
  compare: (a, b) => (b.pod.spec.priority ?? 0) - (a.pod.spec.priority ?? 0) || a.queuedAtMs - b.queuedAtMs,
});
