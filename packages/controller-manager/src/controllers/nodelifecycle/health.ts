import { formatTime, parseTime } from "@coxswain/apimachinery/meta/time";
import type { Lease } from "@coxswain/apimachinery/schema/kinds/coordination/v1";
import type { Node, NodeCondition } from "@coxswain/apimachinery/schema/kinds/core/v1";

/**
 * What is remembered of a node between looks. Times are the observer's own, since the node's clock is not trusted, and of
 * a clock that only grows: one that is set forward must not make all nodes silent.
 */
export interface NodeHealth {
  /** When a sign of life was last seen: another heartbeat in the status, or a renewed lease. */
  readonly seenAt: number;
  /** When Ready last changed. */
  readonly readyChangedAt: number;
  readonly heartbeat: string | undefined;
  readonly transition: string | undefined;
  readonly leaseRenewal: string | undefined;
}

export interface Judgement {
  readonly health: NodeHealth;
  /** Ready as the node said it. */
  readonly observed: "True" | "False" | "Unknown";
  /** Ready as it is after this look. */
  readonly current: "True" | "False" | "Unknown";
  /** To be written; undefined when nothing changed. */
  readonly conditions: NodeCondition[] | undefined;
}

/** Conditions that nobody knows any more once a node is silent. */
const reported = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"] as const;

/**
 * Pure: is there a sign of life within the grace period, and if not, what the node's conditions become.
 * Source: pkg/controller/nodelifecycle/node_lifecycle_controller.go tryUpdateNodeHealth
 */
export function judgeHealth(options: {
  node: Node;
  lease: Lease | undefined;
  known: NodeHealth | undefined;
  /** ms since the epoch; for what is written. */
  now: number;
  monotonic: number;
  graceMs: number;
  startupGraceMs: number;
}): Judgement {
  const { node, lease, known, now, monotonic } = options;
  const ready = conditionOf(node, "Ready");
  const observed = statusOf(ready);
  const health = known === undefined ? firstHealth(node, lease, options) : nextHealth(ready, lease, known, monotonic);
  const graceMs = ready === undefined ? options.startupGraceMs : options.graceMs;
  if (monotonic <= health.seenAt + graceMs) return { health, observed, current: observed, conditions: undefined };

  const conditions = silentConditions(node, now);
  if (conditions === undefined) return { health, observed, current: observed, conditions };
  const current = conditions.find(({ type }) => type === "Ready");
  // Own writes are no sign of life: what is written here is what the next look expects to find.
  const after = {
    ...health,
    heartbeat: current?.lastHeartbeatTime ?? undefined,
    transition: current?.lastTransitionTime ?? undefined,
  };
  return {
    health: observed === "Unknown" ? after : { ...after, readyChangedAt: monotonic },
    observed,
    current: statusOf(current),
    conditions,
  };
}

/** A node that never said anything is judged from its birth, one that has from now. */
function firstHealth(
  node: Node,
  lease: Lease | undefined,
  { now, monotonic }: { readonly now: number; readonly monotonic: number },
): NodeHealth {
  const ready = conditionOf(node, "Ready");
  const ageMs = now - (parseTime(node.metadata.creationTimestamp ?? "") ?? now);
  const at = ready === undefined ? monotonic - ageMs : monotonic;
  return { seenAt: at, readyChangedAt: at, ...signsOf(ready, lease) };
}

function nextHealth(
  ready: NodeCondition | undefined,
  lease: Lease | undefined,
  known: NodeHealth,
  monotonic: number,
): NodeHealth {
  const { heartbeat, transition, leaseRenewal } = signsOf(ready, lease);
  const beat = ready !== undefined && heartbeat !== known.heartbeat;
  const renewed = leaseRenewal !== undefined && (known.leaseRenewal === undefined || leaseRenewal > known.leaseRenewal);
  // The store was restored to an older state. Until the node is heard of again nothing is known, and its grace begins anew.
  const isRestored = leaseRenewal !== undefined && known.leaseRenewal !== undefined && leaseRenewal < known.leaseRenewal;
  return {
    seenAt: beat || renewed || isRestored ? monotonic : known.seenAt,
    readyChangedAt: isRestored || (beat && transition !== known.transition) ? monotonic : known.readyChangedAt,
    heartbeat,
    transition,
    leaseRenewal: renewed || isRestored ? leaseRenewal : known.leaseRenewal,
  };
}

function signsOf(
  ready: NodeCondition | undefined,
  lease: Lease | undefined,
): Pick<NodeHealth, "heartbeat" | "transition" | "leaseRenewal"> {
  return {
    heartbeat: ready?.lastHeartbeatTime ?? undefined,
    transition: ready?.lastTransitionTime ?? undefined,
    leaseRenewal: lease?.spec?.renewTime ?? undefined,
  };
}

/** @returns undefined when all of them are Unknown already. */
function silentConditions(node: Node, now: number): NodeCondition[] | undefined {
  const conditions = [...(node.status?.conditions ?? [])];
  let changed = false;
  for (const type of reported) {
    const at = conditions.findIndex((condition) => condition.type === type);
    const current = conditions[at];
    if (current?.status === "Unknown") continue;
    changed = true;
    if (current === undefined) {
      conditions.push({
        type,
        status: "Unknown",
        lastHeartbeatTime: node.metadata.creationTimestamp ?? null,
        lastTransitionTime: formatTime(now),
        reason: "NodeStatusNeverUpdated",
        message: "Kubelet never posted node status.",
      });
    } else {
      conditions[at] = {
        ...current,
        status: "Unknown",
        lastTransitionTime: formatTime(now),
        reason: "NodeStatusUnknown",
        message: "Kubelet stopped posting node status.",
      };
    }
  }
  return changed ? conditions : undefined;
}

export function conditionOf(node: Node, type: string): NodeCondition | undefined {
  return node.status?.conditions?.find((condition) => condition.type === type);
}

export function statusOf(condition: NodeCondition | undefined): "True" | "False" | "Unknown" {
  return (condition?.status ?? "Unknown") as "True" | "False" | "Unknown";
}
