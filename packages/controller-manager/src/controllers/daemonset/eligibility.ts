import type { DaemonSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { matchesNode } from "@coxswain/apimachinery/scheduling/node-selector";
import { Tolerations } from "@coxswain/apimachinery/scheduling/tolerations";
import { withDaemonTolerations } from "./pod-template.ts";

/** Whether a node is eligible for the DaemonSet's Pods. */
export interface Eligibility {
  /** A Pod should be created on the node. */
  readonly shouldRun: boolean;
  /** An existing Pod may stay: NoSchedule taints do not remove it. */
  readonly shouldContinue: boolean;
}

/** A pure cache, by DaemonSet: each node event asks all of them, and reading 15,000 tolerations takes milliseconds. */
const known = new WeakMap<Pick<DaemonSet, "spec">, (node: Node) => Eligibility>();

/**
 * Pure: evaluates node name, node selector, node affinity and taints. Resources are checked by the scheduler.
 * @param daemonSet never changed afterwards
 * Source: pkg/controller/daemon/daemon_controller.go NodeShouldRunDaemonPod
 */
export function eligibilityFor(daemonSet: Pick<DaemonSet, "spec">): (node: Node) => Eligibility {
  return known.getOrInsertComputed(daemonSet, newEligibility);
}

function newEligibility({ spec }: Pick<DaemonSet, "spec">): (node: Node) => Eligibility {
  const template = withDaemonTolerations(spec.template.spec ?? { containers: [] });
  const { nodeName } = template;
  const tolerations = new Tolerations(template.tolerations);
  return (node) => {
    if (nodeName && nodeName !== node.metadata.name) return never;
    if (!matchesNode({ metadata: {}, spec: template }, node)) return never;
    const taints = node.spec?.taints ?? [];
    if (tolerations.firstUntolerated(taints, ["NoExecute", "NoSchedule"]) === undefined) return always;
    return { shouldRun: false, shouldContinue: tolerations.firstUntolerated(taints, ["NoExecute"]) === undefined };
  };
}

const always: Eligibility = { shouldRun: true, shouldContinue: true };
const never: Eligibility = { shouldRun: false, shouldContinue: false };
