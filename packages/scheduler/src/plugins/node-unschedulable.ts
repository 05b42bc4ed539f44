import { isTolerated } from "@coxswain/apimachinery/scheduling/tolerations";
import type { Plugin } from "../framework/extension-points.ts";
import { unresolvable } from "../framework/status.ts";

const taint = { key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" };

/** Rejects cordoned nodes for pods that do not tolerate the unschedulable taint. */
export const newNodeUnschedulable = (): Plugin => ({
  name: "NodeUnschedulable",
  wakeUpOn: ["Node/Add", "Node/UpdateTaint"],
  filter: (_, { pod }, { node }) =>
    node.spec?.unschedulable && !isTolerated(taint, pod.spec.tolerations)
      ? unresolvable("node(s) were unschedulable")
      : undefined,
});
