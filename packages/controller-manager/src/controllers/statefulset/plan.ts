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
 * Pure: plans the next steps in this order: create and repair Pods from the lowest ordinal; delete Pods with ordinals
 * from `spec.replicas` up, highest first; delete outdated Pods from the highest ordinal down to the partition.
 * With OrderedReady one step is taken at a time and waits for all preceding Pods to be available. With Parallel only
 * the update waits.
 * Source: pkg/controller/statefulset/stateful_set_control.go updateStatefulSet
 */
export function planSteps(view: View): Step[] {
  const { set, pods } = view;
  if (set.metadata.deletionTimestamp) return [];
  const desired = set.spec.replicas ?? 1;
  const byOrdinal = new Map(pods.map((pod) => [ordinalOf(pod), pod]));
  const condemned = pods.filter((pod) => ordinalOf(pod) >= desired);
  const steps: Step[] = [];
  const phases = [
    () => createMissing(view, desired, byOrdinal, steps),
    () => scaleDown(view, condemned, steps),
    () => rollingUpdate(view, desired, byOrdinal, steps),
  ];
  // A phase that returns "wait" prevents the following ones.
  phases.every((phase) => phase() === "continue");
  return steps;
}

type PhaseResult = "continue" | "wait";

const inOrder = ({ set }: View): boolean => set.spec.podManagementPolicy !== "Parallel";

function createMissing(view: View, desired: number, byOrdinal: ReadonlyMap<number, Pod>, steps: Step[]): PhaseResult {
  const { set, revisions } = view;
  for (let ordinal = 0; ordinal < desired; ordinal++) {
    const existing = byOrdinal.get(ordinal);
    const failed = existing?.status?.phase === "Failed";
    if (existing !== undefined && failed) steps.push({ action: "delete failed", pod: existing });
    if (existing === undefined || failed) {
      const pod = newPod(set, revisions, ordinal);
      if (waitsForClaims(view, pod)) return "wait";
      steps.push({ action: "create", pod });
      if (inOrder(view) || steps.length >= burstReplicas) return "wait";
      continue;
    }
    if (inOrder(view) && !(isRunningAndAvailable(view, existing) && !isTerminating(existing))) return "wait";
    if (!hasIdentity(set, existing) || !hasStorage(set, existing) || !claimOwnersAreCurrent(view, existing)) {
      steps.push({ action: "repair", pod: existing });
    }
  }
  return "continue";
}

function scaleDown(view: View, condemned: readonly Pod[], steps: Step[]): PhaseResult {
  for (const pod of condemned) if (!claimOwnersAreCurrent(view, pod)) steps.push({ action: "update claim owners", pod });
  const ascending = condemned.toSorted((a, b) => ordinalOf(a) - ordinalOf(b));
  const firstUnhealthy = ascending.find((pod) => !isHealthy(pod));
  for (const pod of ascending.toReversed()) {
    if (isTerminating(pod)) {
      if (inOrder(view)) return "wait";
      continue;
    }
    // Deleting a Pod while another one is unavailable could leave too few; the first unhealthy Pod itself may be deleted.
    if (inOrder(view) && !isRunningAndAvailable(view, pod) && pod !== firstUnhealthy) return "wait";
    steps.push({ action: "delete", pod });
    if (inOrder(view)) return "wait";
  }
  return "continue";
}

function rollingUpdate(
  { set, revisions }: View,
  desired: number,
  byOrdinal: ReadonlyMap<number, Pod>,
  steps: Step[],
): PhaseResult {
  const { type, rollingUpdate } = set.spec.updateStrategy ?? {};
  if (type === "OnDelete") return "continue";
  const lowest = rollingUpdate?.partition ?? 0;
  for (let ordinal = desired - 1; ordinal >= lowest; ordinal--) {
    const pod = byOrdinal.get(ordinal);
    if (pod === undefined || pod.status?.phase === "Failed") return "wait"; // just created
    if (revisionOf(pod) !== revisions.update.metadata.name && !isTerminating(pod)) {
      steps.push({ action: "delete", pod });
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
  return [...claimsOf(set, ordinalOf(pod)).values()].flatMap(({ metadata }) => claims?.(metadata.name ?? "") ?? []);
}

function waitsForClaims(view: View, pod: Pod): boolean {
  return existingClaims(view, pod).some((claim) => isStale(view.set, pod.metadata.name ?? "", claim));
}

function claimOwnersAreCurrent(view: View, pod: Pod): boolean {
  return existingClaims(view, pod).every((claim) => desiredOwners(view.set, pod, claim) === undefined);
}
