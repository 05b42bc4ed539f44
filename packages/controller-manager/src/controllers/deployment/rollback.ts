import { deepClone } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { Deployment, ReplicaSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { PodTemplateSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { isCopied, parseRevision, revisionOf, rollbackAnnotation } from "./annotations.ts";
import { hashLabel, sameTemplate } from "./history.ts";

/** The Deployment to write, without the rollback annotation, and the Event to record. */
interface Rollback {
  readonly deployment: Deployment;
  readonly event: readonly ["Normal" | "Warning", reason: string, message: string];
}

/** The revision to roll back to; 0 means the previous revision, undefined that no rollback is requested. */
export function rollbackRevision({ metadata }: Deployment): bigint | undefined {
  const text = metadata.annotations?.[rollbackAnnotation] ?? "";
  return text === "" ? undefined : parseRevision(text);
}

/**
 * Pure: applies the template and annotations of the requested revision. Only the rollback annotation of former API
 * versions requests this; `kubectl rollout undo` writes the template itself.
 * Source: pkg/controller/deployment/rollback.go
 */
export function planRollback(deployment: Deployment, sets: readonly ReplicaSet[], requested: bigint): Rollback {
  const { name } = deployment.metadata;
  const revision = requested === 0n ? lastRevision(sets) : requested;
  const rejected = (reason: string, message: string): Rollback => ({
    deployment: withoutRollbackAnnotation(deployment),
    event: ["Warning", reason, message],
  });
  if (revision === 0n) return rejected("DeploymentRollbackRevisionNotFound", "Unable to find last revision.");
  const target = sets.find((set) => revisionOf(set) === revision);
  if (target === undefined) return rejected("DeploymentRollbackRevisionNotFound", "Unable to find the revision to rollback to.");
  if (sameTemplate(target.spec.template, deployment.spec.template)) {
    const message = `The rollback revision contains the same template as current deployment "${name}"`;
    return rejected("DeploymentRollbackTemplateUnchanged", message);
  }
  return {
    deployment: withoutRollbackAnnotation(withTemplateOf(deployment, target)),
    event: ["Normal", "DeploymentRollback", `Rolled back deployment "${name}" to revision ${revision}`],
  };
}

/** The second highest revision; 0 when there is none. */
function lastRevision(sets: readonly ReplicaSet[]): bigint {
  const descending = sets.map((set) => revisionOf(set) ?? 0n).toSorted((a, b) => (a < b ? 1 : a > b ? -1 : 0));
  return descending[1] ?? 0n;
}

/** Replaces the template and the copied annotations by those of the ReplicaSet; annotations that are never copied are kept. */
function withTemplateOf(deployment: Deployment, { metadata, spec }: ReplicaSet): Deployment {
  const { metadata: templateMetadata, spec: podSpec } = deepClone(spec.template ?? emptyTemplate);
  const { [hashLabel]: _, ...labels } = templateMetadata?.labels ?? {};
  const own = Object.entries(deployment.metadata.annotations ?? {}).filter(([key]) => !isCopied(key));
  const theirs = Object.entries(metadata.annotations ?? {}).filter(([key]) => isCopied(key));
  return {
    ...deployment,
    metadata: { ...deployment.metadata, annotations: Object.fromEntries([...own, ...theirs]) },
    spec: { ...deployment.spec, template: { metadata: { ...templateMetadata, labels }, spec: podSpec } },
  };
}

const emptyTemplate: PodTemplateSpec = { metadata: {}, spec: { containers: [] } };

function withoutRollbackAnnotation(deployment: Deployment): Deployment {
  const { [rollbackAnnotation]: _, ...annotations } = deployment.metadata.annotations ?? {};
  return { ...deployment, metadata: { ...deployment.metadata, annotations } };
}
