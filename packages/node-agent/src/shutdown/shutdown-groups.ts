/** How long Pods of a priority, and above up to the next group's, have to end. */
export interface ShutdownGroup {
  priority: number;
  shutdownGracePeriodSeconds: number;
}

const systemCritical = 2_000_000_000;

/** Pure: the two fields of the configuration as groups; none when there is nothing to wait for. */
export function groupsOf(totalMs: number, criticalMs: number): ShutdownGroup[] {
  if (totalMs === 0 || criticalMs > totalMs) return [];
  return [
    { priority: 0, shutdownGracePeriodSeconds: Math.trunc((totalMs - criticalMs) / 1000) },
    { priority: systemCritical, shutdownGracePeriodSeconds: Math.trunc(criticalMs / 1000) },
  ];
}

/**
 * Pure: Pods by group, those first that end first. A Pod belongs to the highest group that is not above it, else to the
 * lowest. Source: pkg/kubelet/nodeshutdown groupByPriority
 */
export function byGroup<T extends { spec: { priority?: number } }>(
  groups: readonly ShutdownGroup[],
  pods: readonly T[],
): { group: ShutdownGroup; pods: T[] }[] {
  const ascending = groups.toSorted((a, b) => a.priority - b.priority).map((group) => ({ group, pods: [] as T[] }));
  for (const pod of pods) {
    const priority = pod.spec.priority ?? 0;
    const own = ascending.findLast(({ group }) => group.priority <= priority) ?? ascending[0];
    own?.pods.push(pod);
  }
  return ascending;
}
