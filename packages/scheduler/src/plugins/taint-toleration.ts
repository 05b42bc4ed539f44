import { maxNodeScore, type Plugin } from "../framework/extension-points.ts";
import { unresolvable } from "../framework/status.ts";
import { normalizeByLargest } from "./normalize.ts";

/** Rejects nodes with untolerated NoSchedule and NoExecute taints; prefers fewer untolerated PreferNoSchedule taints. */
export const newTaintToleration = (): Plugin => ({
  name: "TaintToleration",
  idleAt: ["preScore"],
  wakeUpOn: ["Node/Add", "Node/UpdateTaint"],
  filter(_, { tolerations }, { taints }) {
    if (taints.length === 0) return undefined;
    const taint = tolerations.firstUntolerated(taints, ["NoSchedule", "NoExecute"]);
    return taint === undefined
      ? undefined
      : unresolvable(`node(s) had taint {${taint.key}: ${taint.value ?? ""}}, that the pod didn't tolerate`);
  },
  commonScore: (_, __, nodes) => (nodes.every(({ taints }) => taints.length === 0) ? maxNodeScore : undefined),
  score(_, { tolerations }, { taints }) {
    return taints.filter((taint) => taint.effect === "PreferNoSchedule" && !tolerations.tolerate(taint)).length;
  },
  normalize: (_, __, scores) => normalizeByLargest(scores, true),
});
