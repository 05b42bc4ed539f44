import type { Node, NodeAffinity, PreferredSchedulingTerm } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { matchesNode, matchesTerm, matchingTerms, selectsNodes } from "@coxswain/apimachinery/scheduling/node-selector";
import type { PluginArgs } from "../config/plugin-args.ts";
import type { Plugin } from "../framework/extension-points.ts";
import { unresolvable } from "../framework/status.ts";
import { normalizeByLargest } from "./normalize.ts";

/** nodeSelector and node affinity of the pod and of `addedAffinity`: required terms filter, preferred terms score. */
export const newNodeAffinity = ({ addedAffinity }: PluginArgs["NodeAffinity"] = {}): Plugin => ({
  name: "NodeAffinity",
  idleAt: ["preFilter", "preScore"],
  wakeUpOn: ["Node/Add", "Node/UpdateLabel"],
  mayRefuse: (_, { pod }) => addedAffinity?.requiredDuringSchedulingIgnoredDuringExecution !== undefined || selectsNodes(pod),
  filter(_, { pod }, { node }) {
    if (!meets(addedAffinity, node)) return unresolvable("node(s) didn't match scheduler-enforced node affinity");
    return matchesNode(pod, node) ? undefined : unresolvable("node(s) didn't match Pod's node affinity/selector");
  },
  commonScore: (_, { pod }) =>
    preferredOf(addedAffinity) === undefined && preferredOf(pod.spec.affinity?.nodeAffinity) === undefined ? 0 : undefined,
  score: (_, { pod }, { node }) =>
    weightOf(preferredOf(addedAffinity), node) + weightOf(preferredOf(pod.spec.affinity?.nodeAffinity), node),
  normalize: (_, __, scores) => normalizeByLargest(scores, false),
});

function meets(affinity: NodeAffinity | undefined, node: Node): boolean {
  const required = affinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return required === undefined || required.nodeSelectorTerms.some((term) => matchesTerm(term, node));
}

const preferredOf = (affinity: NodeAffinity | undefined): readonly PreferredSchedulingTerm[] | undefined =>
  affinity?.preferredDuringSchedulingIgnoredDuringExecution;

function weightOf(terms: readonly PreferredSchedulingTerm[] = [], node: Node): number {
  let sum = 0;
  // No node matches a preference without requirements.
  for (const { weight } of matchingTerms(terms, ({ preference }) => preference, node)) sum += weight;
  return sum;
}
