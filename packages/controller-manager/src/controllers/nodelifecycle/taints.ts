import { formatTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Node, Taint } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { conditionOf } from "./health.ts";

export const notReadyTaint = "node.kubernetes.io/not-ready";
export const unreachableTaint = "node.kubernetes.io/unreachable";

/** Maps condition type and status to taint keys. Source: node_lifecycle_controller.go nodeConditionToTaintKeyStatusMap */
const byCondition: readonly (readonly [type: string, status: string, key: string])[] = [
  ["Ready", "False", notReadyTaint],
  ["Ready", "Unknown", unreachableTaint],
  ["MemoryPressure", "True", "node.kubernetes.io/memory-pressure"],
  ["DiskPressure", "True", "node.kubernetes.io/disk-pressure"],
  ["NetworkUnavailable", "True", "node.kubernetes.io/network-unavailable"],
  ["PIDPressure", "True", "node.kubernetes.io/pid-pressure"],
];
const unschedulableTaint = "node.kubernetes.io/unschedulable";
const conditionKeys = new Set([...byCondition.map(([, , key]) => key), unschedulableTaint]);

/**
 * Pure: the node's taints with NoSchedule taints according to its conditions.
 * @returns undefined when unchanged
 */
export function withConditionTaints(node: Node, now: number): Taint[] | undefined {
  const wanted = new Set(
    byCondition.filter(([type, status]) => conditionOf(node, type)?.status === status).map(([, , key]) => key),
  );
  if (node.spec?.unschedulable === true) wanted.add(unschedulableTaint);
  const isOurs = ({ key, effect }: Taint): boolean => effect === "NoSchedule" && conditionKeys.has(key);
  return replaced(node.spec?.taints ?? [], isOurs, wanted, "NoSchedule", now);
}

/**
 * Pure: the node's taints with the given NoExecute taint: `not-ready`, `unreachable` or neither.
 * @returns undefined when unchanged
 */
export function withEvictionTaint(
  node: Node,
  key: typeof notReadyTaint | typeof unreachableTaint | undefined,
  now: number,
): Taint[] | undefined {
  const isOurs = (taint: Taint): boolean =>
    taint.effect === "NoExecute" && (taint.key === notReadyTaint || taint.key === unreachableTaint);
  return replaced(node.spec?.taints ?? [], isOurs, new Set(key === undefined ? [] : [key]), "NoExecute", now);
}

function replaced(
  taints: readonly Taint[],
  isOurs: (taint: Taint) => boolean,
  wanted: ReadonlySet<string>,
  effect: string,
  now: number,
): Taint[] | undefined {
  const kept = taints.filter((taint) => !isOurs(taint) || wanted.has(taint.key));
  const present = new Set(kept.filter(isOurs).map(({ key }) => key));
  const added = [...wanted].filter((key) => !present.has(key)).map((key) => ({ key, effect, timeAdded: formatTime(now) }));
  return kept.length === taints.length && added.length === 0 ? undefined : [...kept, ...added];
}
