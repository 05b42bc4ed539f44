/** The outcome of a plugin's call; undefined is Success, so that the common case costs nothing. Source: framework/interface.go */
export interface Status {
  readonly code: "Unschedulable" | "UnschedulableAndUnresolvable" | "Wait" | "Skip" | "Error";
  readonly reasons: readonly string[];
  readonly plugin?: string;
}

/** No node of this kind will do now; another pod's end may change that. */
export const unschedulable = (...reasons: string[]): Status => ({ code: "Unschedulable", reasons });

/** Removing pods from the node would not help either. */
export const unresolvable = (...reasons: string[]): Status => ({ code: "UnschedulableAndUnresolvable", reasons });

export const failed = (err: unknown): Status => ({ code: "Error", reasons: [err instanceof Error ? err.message : String(err)] });

/** Why a pod fits nowhere. */
export class FitError extends Error {
  readonly statuses: ReadonlyMap<string, Status>;
  readonly unschedulablePlugins: ReadonlySet<string>;

  constructor(nodeCount: number, statuses: ReadonlyMap<string, Status>, preFilterReason?: Status) {
    super(fitMessage(nodeCount, statuses, preFilterReason));
    this.statuses = statuses;
    const all = preFilterReason === undefined ? [...statuses.values()] : [preFilterReason];
    this.unschedulablePlugins = new Set(all.flatMap((status) => status.plugin ?? []));
  }
}

/** `0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable.` */
function fitMessage(nodeCount: number, statuses: ReadonlyMap<string, Status>, preFilterReason: Status | undefined): string {
  if (preFilterReason !== undefined) return `0/${nodeCount} nodes are available: ${preFilterReason.reasons.join(", ")}.`;
  const counts = new Map<string, number>();
  for (const { reasons } of statuses.values()) for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  const parts = [...counts].map(([reason, count]) => `${count} ${reason}`).sort();
  return `0/${nodeCount} nodes are available${parts.length > 0 ? `: ${parts.join(", ")}` : ""}.`;
}
