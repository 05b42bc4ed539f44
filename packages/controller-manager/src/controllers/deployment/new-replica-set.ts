import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { hasCause, isAlreadyExists } from "@coxswain/apimachinery/objects/errors/predicates";
import { deepClone, deepEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { formatGroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";
import { isControlledBy, newControllerRef } from "@coxswain/apimachinery/objects/meta/owner-references";
import type { Deployment, ReplicaSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import { replicaSets } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { computeHash } from "../../pods/revision-hash.ts";
import { annotationsOfNewSet, maxRevision, replicaAnnotations, revisionAnnotation } from "./annotations.ts";
import { conditionOf, newCondition, withCondition } from "./conditions.ts";
import type { Rollout } from "./context.ts";
import { hashLabel, sameTemplate } from "./history.ts";
import { hasProgressDeadline, progressReasons } from "./progress.ts";
import { desiredReplicas, maxSurgeOf, specReplicas } from "./replica-counts.ts";
import { newSetReplicas } from "./rolling-update.ts";
import { writeDeploymentStatus } from "./writes.ts";

/**
 * Brings the ReplicaSet of the current template up to date: highest revision and the Deployment's annotations. Creates
 * it when it does not exist and `create` is set.
 * Source: pkg/controller/deployment/sync.go getNewReplicaSet
 */
export async function syncNewSet(
  rollout: Rollout,
  found: ReplicaSet | undefined,
  oldSets: readonly ReplicaSet[],
  create: boolean,
): Promise<ReplicaSet | undefined> {
  const revision = maxRevision(oldSets) + 1n;
  if (found !== undefined) return adoptRevision(rollout, found, revision);
  return create ? createNewSet(rollout, oldSets, revision) : undefined;
}

async function adoptRevision(rollout: Rollout, found: ReplicaSet, revision: bigint): Promise<ReplicaSet> {
  const { ctx, deployment, signal } = rollout;
  const annotations = annotationsOfNewSet(deployment, found.metadata.annotations ?? {}, revision);
  const minReadySeconds = deployment.spec.minReadySeconds ?? 0;
  if (!deepEqual(annotations, found.metadata.annotations ?? {}) || (found.spec.minReadySeconds ?? 0) !== minReadySeconds) {
    const updated = { ...found, metadata: { ...found.metadata, annotations }, spec: { ...found.spec, minReadySeconds } };
    return ctx.client.update<ReplicaSet>(replicaSets, updated, { signal });
  }
  const condition =
    hasProgressDeadline(deployment) && conditionOf(deployment.status?.conditions, "Progressing") === undefined
      ? newCondition(
          "Progressing",
          "True",
          progressReasons.found,
          `Found new replica set "${found.metadata.name}"`,
          ctx.clock.now(),
        )
      : undefined;
  await recordRevision(rollout, annotations[revisionAnnotation] ?? "", condition);
  return found;
}

async function createNewSet(rollout: Rollout, oldSets: readonly ReplicaSet[], revision: bigint): Promise<ReplicaSet> {
  const { ctx, deployment, signal } = rollout;
  await ctx.turns.next(); // hashing takes milliseconds for a large template
  const desired = buildNewSet(deployment, oldSets, revision);
  await ctx.turns.next(); // and so does encoding
  let created: ReplicaSet;
  let existed = false;
  try {
    created = await ctx.client.create<ReplicaSet>(replicaSets, desired, { signal });
  } catch (err) {
    if (hasCause(err, "NamespaceTerminating")) throw err;
    if (!isAlreadyExists(err)) {
      await reportFailure(rollout, desired.metadata.name ?? "", err);
      throw err;
    }
    created = await resolveCollision(rollout, desired, err);
    existed = true;
  }
  const replicas = specReplicas(desired);
  if (!existed && replicas > 0) {
    const message = `Scaled up replica set ${created.metadata.name} to ${replicas}`;
    ctx.recorder.event(deployment, "Normal", "ScalingReplicaSet", message);
  }
  const condition =
    !existed && hasProgressDeadline(deployment)
      ? newCondition(
          "Progressing",
          "True",
          progressReasons.created,
          `Created new replica set "${created.metadata.name}"`,
          ctx.clock.now(),
        )
      : undefined;
  await recordRevision(rollout, String(revision), condition);
  return created;
}

/** Pure: builds the ReplicaSet for the Deployment's template with the initial size that the strategy allows. Shares parts of the template. */
export function buildNewSet(deployment: Deployment, oldSets: readonly ReplicaSet[], revision: bigint): ReplicaSet {
  const hash = computeHash(deployment.spec.template, deployment.status?.collisionCount);
  const { template, selector = {} } = deployment.spec;
  const labels = deepClone(template.metadata?.labels ?? {}); // of many labels faster than spreading them
  labels[hashLabel] = hash;
  const { name, namespace } = deployment.metadata;
  const annotations = {
    ...annotationsOfNewSet(deployment, {}, revision),
    ...replicaAnnotations(desiredReplicas(deployment), desiredReplicas(deployment) + maxSurgeOf(deployment)),
  };
  return {
    apiVersion: formatGroupVersion(replicaSets),
    kind: replicaSets.kind,
    metadata: {
      name: `${name}-${hash}`,
      ...(namespace === undefined ? {} : { namespace }),
      labels,
      annotations,
      ownerReferences: [newControllerRef(deployment, { group: "apps", version: "v1", kind: "Deployment" })],
    },
    spec: {
      replicas: newSetReplicas(deployment, oldSets, 0),
      minReadySeconds: deployment.spec.minReadySeconds ?? 0,
      selector: { ...selector, matchLabels: { ...selector.matchLabels, [hashLabel]: hash } },
      template: { ...template, metadata: { ...template.metadata, labels } },
    },
  };
}

/**
 * Handles AlreadyExists: returns the Deployment's own ReplicaSet when the cache was stale; otherwise increments
 * collisionCount and throws.
 */
async function resolveCollision(rollout: Rollout, desired: ReplicaSet, err: unknown): Promise<ReplicaSet> {
  const { ctx, deployment, signal } = rollout;
  const { namespace, name = "" } = desired.metadata;
  const existing = await ctx.client.get<ReplicaSet>(replicaSets, { namespace, name }, { signal });
  if (isControlledBy(existing, deployment) && sameTemplate(existing.spec.template, deployment.spec.template)) return existing;
  const collisionCount = (deployment.status?.collisionCount ?? 0) + 1;
  await writeDeploymentStatus(rollout, { ...deployment, status: { ...deployment.status, collisionCount } });
  ctx.log.v(2)?.info("found a hash collision for deployment; bumping collisionCount", { deployment: name, collisionCount });
  throw err;
}

async function reportFailure(rollout: Rollout, name: string, err: unknown): Promise<void> {
  const { ctx, deployment } = rollout;
  const message = `Failed to create new replica set "${name}": ${messageOf(err)}`;
  if (hasProgressDeadline(deployment)) {
    const condition = newCondition("Progressing", "False", progressReasons.createError, message, ctx.clock.now());
    const conditions = withCondition(deployment.status?.conditions ?? [], condition);
    // The creation error takes precedence; the status is written again by the retry.
    await writeDeploymentStatus(rollout, { ...deployment, status: { ...deployment.status, conditions } }).catch(() => {});
  }
  ctx.recorder.event(deployment, "Warning", progressReasons.createError, message);
}

/** Sets the revision annotation of the Deployment to that of its newest ReplicaSet. */
async function recordRevision(
  rollout: Rollout,
  revision: string,
  condition: ReturnType<typeof newCondition> | undefined,
): Promise<void> {
  const { deployment } = rollout;
  const annotations = { ...deployment.metadata.annotations, [revisionAnnotation]: revision };
  const same = deployment.metadata.annotations?.[revisionAnnotation] === revision;
  if (same && condition === undefined) return;
  const conditions =
    condition === undefined ? deployment.status?.conditions : withCondition(deployment.status?.conditions ?? [], condition);
  const status = { ...deployment.status, ...(conditions === undefined ? {} : { conditions }) };
  await writeDeploymentStatus(rollout, { ...deployment, metadata: { ...deployment.metadata, annotations }, status });
}
