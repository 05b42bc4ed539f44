import type { StatefulSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { PersistentVolumeClaim, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { isAvailable, isReady, isTerminating } from "../../pods/pod-state.ts";
import { desiredOwners, isStale } from "./claim-retention.ts";
import { claimsOf, hasIdentity, hasStorage, ordinalOf } from "./identity.ts";
import { newPod, type Revisions, revisionOf } from "./new-pod.ts";

/** Consistent input of the pure planning functions. */
export interface View {
  readonly set: StatefulSet;
  /** All Pods of the StatefulSet in any state. */
  readonly pods: readonly Pod[];
  readonly revisions: Revisions;
  /** 0 when the feature gate StatefulSetMinReadySeconds is off. */
  readonly minReadySeconds: number;
  /**
   * Lookup of claims by name; undefined when the feature gate StatefulSetAutoDeletePVC is off, in which case claim
   * ownership is not managed.
   */
  readonly claims?: ((name: string) => PersistentVolumeClaim | undefined) | undefined;
  readonly now: number;
}

export type Action = "create" | "delete" | "delete failed" | "repair" | "update claim owners";

/** One action on one Pod. */
export interface Step {
  readonly action: Action;
  readonly pod: Pod;
}

/** Upper bound of Pods created in one reconciliation with policy Parallel; the rest follows in the next one. */
const burstReplicas = 500;

/**
 * Pure: plans the next steps, each when it is asked for, in this order: create and repair Pods from the lowest ordinal; delete Pods with ordinals
 * from `spec.replicas` up, highest first; delete outdated Pods from the highest ordinal down to the partition.
 * With OrderedReady one step is taken at a time and waits for all preceding Pods to be available. With Parallel only
 * the update waits.
 * Source: pkg/controller/statefulset/stateful_set_control.go updateStatefulSet
 */
export function* planSteps(view: View): Generator<Step, void, void> {
  const { set, pods } = view;
  if (set.metadata.deletionTimestamp) return;
  const desired = set.spec.replicas ?? 1;
  const byOrdinal = new Map(pods.map((pod) => [ordinalOf(pod), pod]));
  const condemned = pods.filter((pod) => ordinalOf(pod) >= desired);
  // A phase that returns "wait" prevents the following ones.
  if ((yield* createMissing(view, desired, byOrdinal)) === "wait") return;
  if ((yield* scaleDown(view, condemned)) === "wait") return;
  yield* rollingUpdate(view, desired, byOrdinal);
}

type Phase = Generator<Step, "continue" | "wait", void>;

const inOrder = ({ set }: View): boolean => set.spec.podManagementPolicy !== "Parallel";

function* createMissing(view: View, desired: number, byOrdinal: ReadonlyMap<number, Pod>): Phase {
  const { set, revisions } = view;
  let count = 0;
  for (let ordinal = 0; ordinal < desired; ordinal++) {
    const existing = byOrdinal.get(ordinal);
    const failed = existing?.status?.phase === "Failed";
    if (existing !== undefined && failed) {
      count++;
      yield { action: "delete failed", pod: existing };
    }
    if (existing === undefined || failed) {
      const pod = newPod(set, revisions, ordinal);
      if (waitsForClaims(view, pod)) return "wait";
      count++;
      yield { action: "create", pod };
      if (inOrder(view) || count >= burstReplicas) return "wait";
      continue;
    }
    if (inOrder(view) && !(isRunningAndAvailable(view, existing) && !isTerminating(existing))) return "wait";
    if (!hasIdentity(set, existing) || !hasStorage(set, existing) || !claimOwnersAreCurrent(view, existing)) {
      count++;
      yield { action: "repair", pod: existing };
    }
  }
  return "continue";
}

function* scaleDown(view: View, condemned: readonly Pod[]): Phase {
  for (const pod of condemned) if (!claimOwnersAreCurrent(view, pod)) yield { action: "update claim owners", pod };
  const ascending = condemned.toSorted((a, b) => ordinalOf(a) - ordinalOf(b));
  const firstUnhealthy = ascending.find((pod) => !isHealthy(pod));
  for (const pod of ascending.toReversed()) {
    if (isTerminating(pod)) {
      if (inOrder(view)) return "wait";
      continue;
    }
    // Deleting a Pod while another one is unavailable could leave too few; the first unhealthy Pod itself may be deleted.
    if (inOrder(view) && !isRunningAndAvailable(view, pod) && pod !== firstUnhealthy) return "wait";
    yield { action: "delete", pod };
    if (inOrder(view)) return "wait";
  }
  return "continue";
}

function* rollingUpdate({ set, revisions }: View, desired: number, byOrdinal: ReadonlyMap<number, Pod>): Phase {
  const { type, rollingUpdate } = set.spec.updateStrategy ?? {};
  if (type === "OnDelete") return "continue";
  const lowest = rollingUpdate?.partition ?? 0;
  for (let ordinal = desired - 1; ordinal >= lowest; ordinal--) {
    const pod = byOrdinal.get(ordinal);
    if (pod === undefined || pod.status?.phase === "Failed") return "wait"; // just created
    if (revisionOf(pod) !== revisions.update.metadata.name && !isTerminating(pod)) {
      yield { action: "delete", pod };
      return "wait";
    }
    if (!isHealthy(pod)) return "wait";
  }
  return "continue";
}

/** Unlike `isRunningAndAvailable`, without regard to minReadySeconds. */
export function isRunningAndReady(pod: Pod): boolean {
  return pod.status?.phase === "Running" && isReady(pod);
}

/** Whether the Pod is running, ready and available. */
export function isRunningAndAvailable({ minReadySeconds, now }: View, pod: Pod): boolean {
  return isRunningAndReady(pod) && isAvailable(pod, minReadySeconds, now);
}

function isHealthy(pod: Pod): boolean {
  return isRunningAndReady(pod) && !isTerminating(pod);
}

function existingClaims({ set, claims }: View, pod: Pod): PersistentVolumeClaim[] {
  if (claims === undefined) return [];
  return [...claimsOf(set, ordinalOf(pod)).values()].flatMap(({ name }) => claims(name) ?? []);
}

function waitsForClaims(view: View, pod: Pod): boolean {
  return existingClaims(view, pod).some((claim) => isStale(view.set, pod.metadata.name ?? "", claim));
}

function claimOwnersAreCurrent(view: View, pod: Pod): boolean {
  return existingClaims(view, pod).every((claim) => desiredOwners(view.set, pod, claim) === undefined);
}
