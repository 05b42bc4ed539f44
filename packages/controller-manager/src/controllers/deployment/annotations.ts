import type { Deployment, ReplicaSet } from "@coxswain/apimachinery/schema/kinds/apps/v1";

/** Annotations by which deployments and their ReplicaSets remember. Source: pkg/controller/deployment/util/deployment_util.go */
export const revisionAnnotation = "deployment.kubernetes.io/revision";
export const revisionHistoryAnnotation = "deployment.kubernetes.io/revision-history";
export const desiredReplicasAnnotation = "deployment.kubernetes.io/desired-replicas";
export const maxReplicasAnnotation = "deployment.kubernetes.io/max-replicas";
/** On deployments: the revision to go back to. */
export const rollbackAnnotation = "deprecated.deployment.rollback.to";

const notCopied = new Set([
  "kubectl.kubernetes.io/last-applied-configuration",
  revisionAnnotation,
  revisionHistoryAnnotation,
  desiredReplicasAnnotation,
  maxReplicasAnnotation,
  rollbackAnnotation,
]);

/** Goes from a deployment to its ReplicaSets, and back with a rollback. */
export function isCopied(annotation: string): boolean {
  return !notCopied.has(annotation);
}

/** Revision of a ReplicaSet or deployment, of 64 bits: 0 when it has none, undefined when it is not a number. */
export function revisionOf({ metadata }: { metadata: { annotations?: Record<string, string> } }): bigint | undefined {
  return parseRevision(metadata.annotations?.[revisionAnnotation] || "0");
}

export function parseRevision(text: string): bigint | undefined {
  if (!/^[-+]?\d{1,19}$/.test(text)) return undefined;
  const revision = BigInt(text.replace("+", ""));
  return BigInt.asIntN(64, revision) === revision ? revision : undefined;
}

export function maxRevision(sets: readonly ReplicaSet[]): bigint {
  return sets.reduce((most, set) => {
    const revision = revisionOf(set) ?? 0n;
    return revision > most ? revision : most;
  }, 0n);
}

/** Count that an annotation holds; undefined when it is absent or not a number. */
export function countIn({ metadata }: ReplicaSet, annotation: string): number | undefined {
  const text = metadata.annotations?.[annotation];
  return text !== undefined && /^-?\d{1,10}$/.test(text) ? Number(text) : undefined;
}

/** The two counts that tell later whether the deployment was scaled since. */
export function replicaAnnotations(desired: number, max: number): Record<string, string> {
  return { [desiredReplicasAnnotation]: String(desired), [maxReplicasAnnotation]: String(max) };
}

/**
 * What a ReplicaSet's annotations should be: the deployment's, and the next revision with its history.
 * @param revision of the newest template; an older set that becomes the newest again gets it
 * Source: SetNewReplicaSetAnnotations
 */
export function annotationsOfNewSet(
  deployment: Deployment,
  current: Record<string, string>,
  revision: bigint,
): Record<string, string> {
  const annotations = { ...current };
  for (const [key, value] of Object.entries(deployment.metadata.annotations ?? {})) {
    if (isCopied(key)) annotations[key] = value;
  }
  const old = revisionOf({ metadata: { annotations: current } });
  if (old === undefined || old >= revision) return annotations;
  annotations[revisionAnnotation] = String(revision);
  const oldText = current[revisionAnnotation];
  if (oldText === undefined) return annotations;
  const history = current[revisionHistoryAnnotation];
  annotations[revisionHistoryAnnotation] = appendRevision(history, oldText);
  return annotations;
}

const longestHistory = 2000;

function appendRevision(history: string | undefined, revision: string): string {
  if (history === undefined || history === "") return revision;
  const kept = history.split(",");
  while (kept.length > 0 && kept.join(",").length + 1 + revision.length > longestHistory) kept.shift();
  return [...kept, revision].join(",");
}
