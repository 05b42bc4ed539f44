import { matchesNode, matchesTerm } from "@coxswain/apimachinery/scheduling/node-selector";
import type { Plugin } from "../framework/extension-points.ts";
import { unresolvable } from "../framework/status.ts";
import { normalizeByLargest } from "./normalize.ts";

/** nodeSelector and node affinity: required decides, preferred adds its weights. */
export const newNodeAffinity = (): Plugin => ({
  name: "NodeAffinity",
  wakeUpOn: ["Node/Add", "Node/UpdateLabel"],
  filter: (_, { pod }, { node }) =>
    matchesNode(pod, node) ? undefined : unresolvable("node(s) didn't match Pod's node affinity/selector"),
  score(_, { pod }, { node }) {
    let score = 0;
    for (const { weight, preference } of pod.spec.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []) {
      const isEmpty = (preference.matchExpressions ?? []).length === 0 && (preference.matchFields ?? []).length === 0;
      if (weight !== 0 && (isEmpty || matchesTerm(preference, node))) score += weight;
    }
    return score;
  },
  normalize: (_, __, scores) => normalizeByLargest(scores, false),
});
