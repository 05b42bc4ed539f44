import type { Deployment, ReplicaSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";

/**
 * Annotations that record the revision and size history of Deployments and ReplicaSets.
 * Source: pkg/controller/deployment/util/deployment_util.go
 */
export const revisionAnnotation = "deployment.kubernetes.io/revision";
export const revisionHistoryAnnotation = "deployment.kubernetes.io/revision-history";
export const desiredReplicasAnnotation = "deployment.kubernetes.io/desired-replicas";
export const maxReplicasAnnotation = "deployment.kubernetes.io/max-replicas";
/** On Deployments: the revision to roll back to. */
export const rollbackAnnotation = "deprecated.deployment.rollback.to";

const notCopied = new Set([
  "kubectl.kubernetes.io/last-applied-configuration",
  revisionAnnotation,
  revisionHistoryAnnotation,
  desiredReplicasAnnotation,
  maxReplicasAnnotation,
  rollbackAnnotation,
]);

/** Whether the annotation is copied from a Deployment to its ReplicaSets, and back by a rollback. */
export function isCopied(annotation: string): boolean {
  return !notCopied.has(annotation);
}

/** Revision of a ReplicaSet or Deployment as int64: 0 when the annotation is absent, undefined when it is malformed. */
export function revisionOf({ metadata }: { metadata: { annotations?: Record<string, string> } }): bigint | undefined {
  return parseRevision(metadata.annotations?.[revisionAnnotation] || "0");
}

/** Parses a decimal int64; undefined when malformed or out of range. */
export function parseRevision(text: string): bigint | undefined {
  if (!/^[-+]?\d{1,19}$/.test(text)) return undefined;
  const revision = BigInt(text.replace("+", ""));
  return BigInt.asIntN(64, revision) === revision ? revision : undefined;
}

/** The highest revision of the ReplicaSets; 0 without any. */
export function maxRevision(sets: readonly ReplicaSet[]): bigint {
  return sets.reduce((most, set) => {
    const revision = revisionOf(set) ?? 0n;
    return revision > most ? revision : most;
  }, 0n);
}

/** Integer value of an annotation; undefined when it is absent or malformed. */
export function countIn({ metadata }: ReplicaSet, annotation: string): number | undefined {
  const text = metadata.annotations?.[annotation];
  return text !== undefined && /^-?\d{1,10}$/.test(text) ? Number(text) : undefined;
}

/** Annotations with the Deployment's size; a later difference shows that the Deployment was scaled. */
export function replicaAnnotations(desired: number, max: number): Record<string, string> {
  return { [desiredReplicasAnnotation]: String(desired), [maxReplicasAnnotation]: String(max) };
}

/**
 * Computes the annotations of the new ReplicaSet: the Deployment's annotations plus the revision and its history.
 * @param revision the revision of the newest template; also assigned to an older ReplicaSet that becomes the newest again
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
