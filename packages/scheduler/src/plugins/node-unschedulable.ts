import type { Plugin } from "../framework/extension-points.ts";
import { unresolvable } from "../framework/status.ts";

const taint = { key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" };

/** Rejects cordoned nodes for pods that do not tolerate the unschedulable taint. */
export const newNodeUnschedulable = (): Plugin => ({
  name: "NodeUnschedulable",
  wakeUpOn: ["Node/Add", "Node/UpdateTaint"],
  filter: (_, { tolerations }, { node }) =>
    node.spec?.unschedulable && !tolerations.tolerate(taint) ? unresolvable("node(s) were unschedulable") : undefined,
});
