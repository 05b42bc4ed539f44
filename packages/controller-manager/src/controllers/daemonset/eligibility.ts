import { matchesNode } from "@coxswain/apimachinery/scheduling/node-selector";
import { untolerated } from "@coxswain/apimachinery/scheduling/tolerations";
import type { DaemonSet } from "@coxswain/apimachinery/schema/kinds/apps/v1";
import type { Node } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { withDaemonTolerations } from "./pod-template.ts";

export interface Eligibility {
  /** A pod belongs on the node. */
  readonly shouldRun: boolean;
  /** A pod that is there may stay: a taint that only keeps new pods away does not end it. */
  readonly shouldContinue: boolean;
}

/**
 * Pure: whether the set's pod is for a node: by its name, the template's node selector and affinity, and the node's
 * taints. Room on the node is the scheduler's question.
 * Source: pkg/controller/daemon/daemon_controller.go NodeShouldRunDaemonPod
 */
export function eligibilityFor({ spec }: Pick<DaemonSet, "spec">): (node: Node) => Eligibility {
  const template = withDaemonTolerations(spec.template.spec ?? { containers: [] });
  const { nodeName, tolerations = [] } = template;
  return (node) => {
    if (nodeName && nodeName !== node.metadata.name) return never;
    if (!matchesNode({ metadata: {}, spec: template }, node)) return never;
    const taints = node.spec?.taints ?? [];
    if (untolerated(taints, tolerations, ["NoExecute", "NoSchedule"]) === undefined) return always;
    return { shouldRun: false, shouldContinue: untolerated(taints, tolerations, ["NoExecute"]) === undefined };
  };
}

const always: Eligibility = { shouldRun: true, shouldContinue: true };
const never: Eligibility = { shouldRun: false, shouldContinue: false };
