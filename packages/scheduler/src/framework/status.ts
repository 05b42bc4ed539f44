import { messageOf } from "@coxswain/apimachinery/errors/message";

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

export const failed = (err: unknown): Status => ({ code: "Error", reasons: [messageOf(err)] });

/** A plugin said no with its own problem, or against a decision that was made. */
export class PluginError extends Error {
  constructor(point: string, { plugin, reasons }: Status) {
    const name = JSON.stringify(plugin ?? "");
    const what = point === "Filter" ? `${name} filter plugin` : `${point} plugin ${name}`;
    super(`running ${what}: ${reasons.join(", ")}`);
  }
}

/** Why a pod fits nowhere. `statuses` has each node's refusal by the node's name. */
export class FitError extends Error {
  readonly statuses: ReadonlyMap<string, Status>;
  readonly unschedulablePlugins: ReadonlySet<string>;

  constructor(nodeCount: number, statuses: ReadonlyMap<string, Status>) {
    super(fitMessage(nodeCount, statuses));
    this.statuses = statuses;
    this.unschedulablePlugins = new Set([...statuses.values()].flatMap(({ plugin }) => plugin ?? []));
  }
}

/** There is no node at all; as far as users can tell that is a refusal, too. Source: ErrNoNodesAvailable */
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
