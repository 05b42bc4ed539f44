import { formatTime, parseTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Lease } from "@coxswain/apimachinery/objects/schema/kinds/coordination/v1";
import type { Node, NodeCondition } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

/**
 * Observed state of a node between checks. Times are from this process's monotonic clock: node clocks are not trusted,
 * and setting the wall clock forward must not make all nodes appear silent.
 */
export interface NodeHealth {
  /** Time of the last observed heartbeat: a new lastHeartbeatTime or a renewed Lease. */
  readonly seenAt: number;
  /** Time of the last observed transition of Ready. */
  readonly readyChangedAt: number;
  readonly heartbeat: string | undefined;
  readonly transition: string | undefined;
  readonly leaseRenewal: string | undefined;
}

/** Result of `checkHealth`. */
interface HealthCheck {
  readonly health: NodeHealth;
  /** Status of Ready as reported by the node. */
  readonly observed: "True" | "False" | "Unknown";
  /** Status of Ready after this check. */
  readonly current: "True" | "False" | "Unknown";
  /** Conditions to write; undefined when unchanged. */
  readonly conditions: NodeCondition[] | undefined;
}

/** Conditions that become Unknown when the node stops reporting. */
const reported = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"] as const;

/**
 * Pure: checks for a heartbeat within the grace period and computes the new conditions when there was none.
 * Source: pkg/controller/nodelifecycle/node_lifecycle_controller.go tryUpdateNodeHealth
 */
export function checkHealth(options: {
  node: Node;
  lease: Lease | undefined;
  known: NodeHealth | undefined;
  /** ms since the epoch; used for written timestamps. */
  now: number;
  monotonic: number;
  graceMs: number;
  startupGraceMs: number;
}): HealthCheck {
  const { node, lease, known, now, monotonic } = options;
  const ready = conditionOf(node, "Ready");
  const observed = statusOf(ready);
  const health = known === undefined ? firstHealth(node, lease, options) : nextHealth(ready, lease, known, monotonic);
  const graceMs = ready === undefined ? options.startupGraceMs : options.graceMs;
  if (monotonic <= health.seenAt + graceMs) return { health, observed, current: observed, conditions: undefined };

  const conditions = unknownConditions(node, now);
  if (conditions === undefined) return { health, observed, current: observed, conditions };
  const current = conditions.find(({ type }) => type === "Ready");
  // The controller's own write must not count as a heartbeat in the next check.
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

/** First observation: the grace period starts at creation for a node that never reported, otherwise now. */
function firstHealth(
  node: Node,
  lease: Lease | undefined,
  { now, monotonic }: { readonly now: number; readonly monotonic: number },
): NodeHealth {
  const ready = conditionOf(node, "Ready");
  const ageMs = now - (parseTime(node.metadata.creationTimestamp ?? "") ?? now);
  const at = ready === undefined ? monotonic - ageMs : monotonic;
  return { seenAt: at, readyChangedAt: at, ...heartbeatsOf(ready, lease) };
}

function nextHealth(
  ready: NodeCondition | undefined,
  lease: Lease | undefined,
  known: NodeHealth,
  monotonic: number,
): NodeHealth {
  const { heartbeat, transition, leaseRenewal } = heartbeatsOf(ready, lease);
  const beat = ready !== undefined && heartbeat !== known.heartbeat;
  const renewed = leaseRenewal !== undefined && (known.leaseRenewal === undefined || leaseRenewal > known.leaseRenewal);
  // The store was restored from a backup. The grace period restarts until the node reports again.
  const isRestored = leaseRenewal !== undefined && known.leaseRenewal !== undefined && leaseRenewal < known.leaseRenewal;
  return {
    seenAt: beat || renewed || isRestored ? monotonic : known.seenAt,
    readyChangedAt: isRestored || (beat && transition !== known.transition) ? monotonic : known.readyChangedAt,
    heartbeat,
    transition,
    leaseRenewal: renewed || isRestored ? leaseRenewal : known.leaseRenewal,
  };
}

function heartbeatsOf(
  ready: NodeCondition | undefined,
  lease: Lease | undefined,
): Pick<NodeHealth, "heartbeat" | "transition" | "leaseRenewal"> {
  return {
    heartbeat: ready?.lastHeartbeatTime ?? undefined,
    transition: ready?.lastTransitionTime ?? undefined,
    leaseRenewal: lease?.spec?.renewTime ?? undefined,
  };
}

/** Conditions set to Unknown; undefined when they are Unknown already. */
function unknownConditions(node: Node, now: number): NodeCondition[] | undefined {
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

/** Status of a condition; Unknown when it is missing. */
export function statusOf(condition: NodeCondition | undefined): "True" | "False" | "Unknown" {
  return condition?.status ?? "Unknown";
}
