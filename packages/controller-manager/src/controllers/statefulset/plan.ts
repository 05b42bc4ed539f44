import type { StatefulSet } from "@coxswain/apimachinery/schema/kinds/apps/v1";
import type { PersistentVolumeClaim, Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { isAvailable, isReady, isTerminating } from "../../pods/pod-state.ts";
import { isStale, wantedOwners } from "./claim-retention.ts";
import { claimsOf, hasIdentity, hasStorage, ordinalOf } from "./identity.ts";
import { newPod, type Revisions, revisionOf } from "./new-pod.ts";

/** What a decision is made from, all of one moment. */
export interface View {
  readonly set: StatefulSet;
  /** The set's own, whatever their state. */
  readonly pods: readonly Pod[];
  readonly revisions: Revisions;
  /** 0 with the gate StatefulSetMinReadySeconds off. */
  readonly minReadySeconds: number;
  /** Claims by name; absent with the gate StatefulSetAutoDeletePVC off: then whom a claim belongs to is not looked at. */
  readonly claims?: ((name: string) => PersistentVolumeClaim | undefined) | undefined;
  readonly now: number;
}

export type Action = "create" | "delete" | "delete failed" | "repair" | "settle claims";

/** One thing to do with one pod. */
export interface Step {
  readonly action: Action;
  readonly pod: Pod;
}

/** No more than so many pods at once where order does not matter; the rest at the next look. */
const burstReplicas = 500;

/**
 * Pure: what to do next, in this order. Ordinals from the lowest are created, and repaired; those beyond `spec.replicas`
 * are deleted from the highest; then old ones from the highest down to the partition give way to the update. With
 * OrderedReady one step is taken at a time, and each waits until all before it serve; with Parallel only the update waits.
 * Source: pkg/controller/statefulset/stateful_set_control.go updateStatefulSet
 */
export function planSteps(view: View): Step[] {
  const { set, pods } = view;
  if (set.metadata.deletionTimestamp) return [];
  const wanted = set.spec.replicas ?? 1;
  const byOrdinal = new Map(pods.map((pod) => [ordinalOf(pod), pod]));
  const condemned = pods.filter((pod) => ordinalOf(pod) >= wanted);
  const steps: Step[] = [];
  const phases = [
    () => fillUp(view, wanted, byOrdinal, steps),
    () => scaleDown(view, condemned, steps),
    () => rollOn(view, wanted, byOrdinal, steps),
  ];
  // A phase that has to wait holds up those after it.
  phases.every((phase) => phase() === "go on");
  return steps;
}

type Verdict = "go on" | "wait";

const inOrder = ({ set }: View): boolean => set.spec.podManagementPolicy !== "Parallel";

function fillUp(view: View, wanted: number, byOrdinal: ReadonlyMap<number, Pod>, steps: Step[]): Verdict {
  const { set, revisions } = view;
  for (let ordinal = 0; ordinal < wanted; ordinal++) {
    const there = byOrdinal.get(ordinal);
    const failed = there?.status?.phase === "Failed";
    if (there !== undefined && failed) steps.push({ action: "delete failed", pod: there });
    if (there === undefined || failed) {
      const pod = newPod(set, revisions, ordinal);
      if (waitsForClaims(view, pod)) return "wait";
      steps.push({ action: "create", pod });
      if (inOrder(view) || steps.length >= burstReplicas) return "wait";
      continue;
    }
    if (inOrder(view) && !(serves(view, there) && !isTerminating(there))) return "wait";
    if (!hasIdentity(set, there) || !hasStorage(set, there) || !claimsSettled(view, there)) {
      steps.push({ action: "repair", pod: there });
    }
  }
  return "go on";
}

function scaleDown(view: View, condemned: readonly Pod[], steps: Step[]): Verdict {
  for (const pod of condemned) if (!claimsSettled(view, pod)) steps.push({ action: "settle claims", pod });
  const ascending = condemned.toSorted((a, b) => ordinalOf(a) - ordinalOf(b));
  const firstUnhealthy = ascending.find((pod) => !isHealthy(pod));
  for (const pod of ascending.toReversed()) {
    if (isTerminating(pod)) {
      if (inOrder(view)) return "wait";
      continue;
    }
    // Taking one that serves while another does not might be one too many; unless the other is beyond help.
    if (inOrder(view) && !serves(view, pod) && pod !== firstUnhealthy) return "wait";
    steps.push({ action: "delete", pod });
    if (inOrder(view)) return "wait";
  }
  return "go on";
}

function rollOn({ set, revisions }: View, wanted: number, byOrdinal: ReadonlyMap<number, Pod>, steps: Step[]): Verdict {
  const { type, rollingUpdate } = set.spec.updateStrategy ?? {};
  if (type === "OnDelete") return "go on";
  const lowest = rollingUpdate?.partition ?? 0;
  for (let ordinal = wanted - 1; ordinal >= lowest; ordinal--) {
    const pod = byOrdinal.get(ordinal);
    if (pod === undefined || pod.status?.phase === "Failed") return "wait"; // only just created
    if (revisionOf(pod) !== revisions.update.metadata.name && !isTerminating(pod)) {
      steps.push({ action: "delete", pod });
      return "wait";
    }
    if (!isHealthy(pod)) return "wait";
  }
  return "go on";
}

export function isRunningAndReady(pod: Pod): boolean {
  return pod.status?.phase === "Running" && isReady(pod);
}

export function serves({ minReadySeconds, now }: View, pod: Pod): boolean {
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

function claimsSettled(view: View, pod: Pod): boolean {
  return existingClaims(view, pod).every((claim) => wantedOwners(view.set, pod, claim) === undefined);
}
