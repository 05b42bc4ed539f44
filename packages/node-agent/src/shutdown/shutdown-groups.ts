import type { ShutdownGroup } from "../settings/structures.ts";

const systemCritical = 2_000_000_000;

/** Pure: the two grace period settings as groups; empty when no delay is configured. */
export function groupsOf(totalMs: number, criticalMs: number): ShutdownGroup[] {
  if (totalMs === 0 || criticalMs > totalMs) return [];
  return [
    { priority: 0, shutdownGracePeriodSeconds: Math.trunc((totalMs - criticalMs) / 1000) },
    { priority: systemCritical, shutdownGracePeriodSeconds: Math.trunc(criticalMs / 1000) },
  ];
}

/**
 * Pure: Pods by group, in the order of termination. A Pod belongs to the group with the highest priority that does not exceed
 * its own, else to the lowest. Source: pkg/kubelet/nodeshutdown groupByPriority
 */
export function byGroup<T extends { spec: { priority?: number } }>(
  groups: readonly ShutdownGroup[],
  pods: readonly T[],
): { group: ShutdownGroup; pods: T[] }[] {
  const withoutPods = (group: ShutdownGroup): { group: ShutdownGroup; pods: T[] } => ({ group, pods: [] });
  const ascending = groups.toSorted((a, b) => a.priority - b.priority).map(withoutPods);
  for (const pod of pods) {
    const priority = pod.spec.priority ?? 0;
    const own = ascending.findLast(({ group }) => group.priority <= priority) ?? ascending[0];
    own?.pods.push(pod);
  }
  return ascending;
}
