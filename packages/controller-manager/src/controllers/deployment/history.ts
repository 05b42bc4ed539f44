import { byCreation } from "@coxswain/apimachinery/objects/meta/creation";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { Deployment, ReplicaSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { PodTemplateSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { revisionOf } from "./annotations.ts";
import { specReplicas } from "./replica-counts.ts";

export const hashLabel = "pod-template-hash";

/** The ReplicaSet with the Deployment's template; the oldest when there are several. Compares one in each step. Source: FindNewReplicaSet */
export function* findingNewSet(deployment: Deployment, sets: readonly ReplicaSet[]): Steps<ReplicaSet | undefined> {
  for (const set of sets.toSorted(byCreation)) {
    if (sameTemplate(set.spec.template, deployment.spec.template)) return set;
    yield;
  }
  return undefined;
}

/** Whether two templates are equal apart from the pod-template-hash label. Source: EqualIgnoreHash */
export function sameTemplate(a: PodTemplateSpec | undefined, b: PodTemplateSpec | undefined): boolean {
  return (
    semanticEqual(a?.spec, b?.spec) &&
    semanticEqual({ ...a?.metadata, labels: undefined }, { ...b?.metadata, labels: undefined }) &&
    hasLabelsOf(a?.metadata?.labels ?? {}, b?.metadata?.labels ?? {}) &&
    hasLabelsOf(b?.metadata?.labels ?? {}, a?.metadata?.labels ?? {})
  );
}

type Labels = Readonly<Record<string, string>>;

/** Whether `a` has all labels of `b`, apart from the hash. */
function hasLabelsOf(a: Labels, b: Labels): boolean {
  for (const key in b) {
    if (key !== hashLabel && (!Object.hasOwn(a, key) || a[key] !== b[key])) return false;
  }
  return true;
}

/**
 * Pure: selects the old ReplicaSets beyond `spec.revisionHistoryLimit`, lowest revision first. Keeps those that have
 * replicas or whose status is not up to date.
 * Source: sync.go cleanupDeployment
 */
export function planCleanup(deployment: Deployment, oldSets: readonly ReplicaSet[]): ReplicaSet[] {
  const { revisionHistoryLimit: limit } = deployment.spec;
  if (limit === undefined) return [];
  const alive = oldSets.filter(({ metadata }) => !metadata.deletionTimestamp);
  const surplus = alive.length - limit;
  if (surplus <= 0) return [];
  return alive.toSorted(byRevision).slice(0, surplus).filter(isIdle);
}

function byRevision(a: ReplicaSet, b: ReplicaSet): number {
  const [ofA, ofB] = [revisionOf(a) ?? 0n, revisionOf(b) ?? 0n];
  return ofA === ofB ? byCreation(a, b) : ofA < ofB ? -1 : 1;
}

function isIdle(set: ReplicaSet): boolean {
  const { replicas = 0, observedGeneration = 0 } = set.status ?? {};
  return replicas === 0 && specReplicas(set) === 0 && (set.metadata.generation ?? 0) <= observedGeneration;
}
