import { messageOf } from "@coxswain/apimachinery/objects/errors/message";

/** The outcome of a plugin call other than Success, which is undefined to save an allocation. Source: framework/interface.go */
export interface Status {
  readonly code: "Unschedulable" | "UnschedulableAndUnresolvable" | "Wait" | "Skip" | "Error";
  readonly reasons: readonly string[];
  readonly plugin?: string;
}

/** The pod does not fit the node now; preempting other pods may change that. */
export const unschedulable = (...reasons: string[]): Status => ({ code: "Unschedulable", reasons });

/** The pod does not fit the node, and preempting other pods would not help. */
export const unresolvable = (...reasons: string[]): Status => ({ code: "UnschedulableAndUnresolvable", reasons });

/** The plugin failed; aborts the cycle, unlike a rejection. */
export const failed = (err: unknown): Status => ({ code: "Error", reasons: [messageOf(err)] });

/** A plugin failed, or rejected a pod after its node was chosen. */
export class PluginError extends Error {
  constructor(point: string, { plugin, reasons }: Status) {
    const name = JSON.stringify(plugin ?? "");
    const what = point === "Filter" ? `${name} filter plugin` : `${point} plugin ${name}`;
    super(`running ${what}: ${reasons.join(", ")}`);
  }
}

/** No node fits the pod. `statuses` has the rejection of each node by node name. */
export class FitError extends Error {
  readonly statuses: ReadonlyMap<string, Status>;
  readonly unschedulablePlugins: ReadonlySet<string>;

  constructor(nodeCount: number, statuses: ReadonlyMap<string, Status>) {
    super(fitMessage(nodeCount, statuses));
    this.statuses = statuses;
    this.unschedulablePlugins = new Set([...statuses.values()].flatMap(({ plugin }) => plugin ?? []));
  }
}

/** The cluster has no nodes. Reported as Unschedulable, like FitError. Source: ErrNoNodesAvailable */
export class NoNodesError extends Error {
  constructor() {
    super("no nodes available to schedule pods");
  }
}

/** `0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable.` */
export function fitMessage(nodeCount: number, statuses: ReadonlyMap<string, Status>): string {
  const counts = new Map<string, number>();
  for (const { reasons } of statuses.values()) for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  const parts = [...counts].map(([reason, count]) => `${count} ${reason}`).sort();
  return `0/${nodeCount} nodes are available: ${parts.join(", ")}.`;
}
