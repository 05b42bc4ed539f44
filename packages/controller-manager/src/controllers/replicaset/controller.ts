import { type Controller, done, type Result } from "@coxswain/apimachinery/controller/controller";
import { type Expectations, newExpectations } from "@coxswain/apimachinery/controller/expectations";
import { enqueueBy, enqueueSelf } from "@coxswain/apimachinery/controller/sources";
import type { Outcome } from "@coxswain/apimachinery/decisions/decision-log";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import { keyOf, type ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import { controllerOf } from "@coxswain/apimachinery/objects/meta/owner-references";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { ReplicaSet, ReplicaSetStatus } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { Pod, PodTemplateSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { pods, replicaSets } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";
import type { ControllerContext } from "../../controller-context.ts";
import { defineController } from "../../define-controller.ts";
import { applyPodChanges, ownWritesPending } from "../../pods/apply-pod-changes.ts";
import { enqueueWhenAvailable, type Ownership, ownerEventHandlers } from "../../pods/owner-event-handlers.ts";
import { byOrphan, candidatesFor, claimObjects, orphanIndex } from "../../pods/ownership.ts";
import { isActive } from "../../pods/pod-state.ts";
import { writeStatus } from "../../pods/write-status.ts";
import { planReplicas } from "./plan.ts";
import { type ReplicaFailure, replicaStatus } from "./status.ts";

/**
 * replicaset-controller: maintains `spec.replicas` active Pods.
 * Watches ReplicaSets (own key) and Pods (key of the controlling ReplicaSet; an orphan enqueues every ReplicaSet that
 * selects it); writes Pods, replicasets/status and Events on the ReplicaSet.
 */
export const newReplicaSetController = (ctx: ControllerContext): Controller =>
  newReplicasController<ReplicaSet>(ctx, {
    name: "replicaset",
    ref: replicaSets,
    workers: ctx.config.concurrency.replicaSet,
    selectorOf: ({ spec }) => LabelSelector.ofCached(spec.selector),
  });

/** Common shape of ReplicaSets and ReplicationControllers. */
interface ReplicasOwner extends KubeObject {
  spec: { replicas?: number; minReadySeconds?: number; template?: PodTemplateSpec };
  status?: ReplicaSetStatus;
}

/** Differences between ReplicaSets and ReplicationControllers. */
interface ReplicasKind<T extends ReplicasOwner> {
  /** Name of the work queue in metrics. */
  readonly name: string;
  readonly ref: ResourceRef;
  readonly workers: number;
  selectorOf(owner: T): LabelSelector;
}

interface ReplicasContext<T extends ReplicasOwner> extends ControllerContext {
  readonly kind: ReplicasKind<T>;
  readonly owners: SharedInformer<T>;
  readonly pods: SharedInformer<Pod>;
  readonly expectations: Expectations;
}

/** Controller shared by ReplicaSets and ReplicationControllers. */
export function newReplicasController<T extends ReplicasOwner>(base: ControllerContext, kind: ReplicasKind<T>): Controller {
  const owners = base.informers.for<T>(kind.ref);
  const podInformer = base.informers.for<Pod>(pods);
  podInformer.addIndex(orphanIndex, byOrphan);
  const expectations = newExpectations(base.clock);
  const ctx: ReplicasContext<T> = {
    ...base,
    kind,
    owners,
    pods: podInformer,
    expectations,
  };
  owners.addHandler({ deleted: (owner) => expectations.forget(keyOf(owner)) });
  return defineController(ctx, {
    name: kind.name,
    sources: [enqueueSelf(owners), enqueueBy(podInformer, (queue) => ownerEventHandlers(ownershipOf(ctx), queue))],
    reconcile,
    workers: kind.workers,
  });
}

/** Maps Pod events to owners and expectations. */
function ownershipOf<T extends ReplicasOwner>(ctx: ReplicasContext<T>): Ownership<T, Pod> {
  const { owners, kind, expectations } = ctx;
  return {
    owners,
    selectorOf: kind.selectorOf,
    created: (key) => expectations.creationObserved(key),
    removed: (key, { metadata }) => expectations.deletionObserved(key, metadata.uid ?? ""),
    changed: enqueueWhenAvailable(({ spec }) => spec.minReadySeconds ?? 0),
  };
}

/** Level-based: acts on the cached state, not on the event that enqueued the key. A rejection is retried with backoff. */
async function reconcile<T extends ReplicasOwner>(ctx: ReplicasContext<T>, key: ObjectKey, signal: AbortSignal): Promise<Result> {
  const { owners, expectations } = ctx;
  const owner = owners.lister.get(key);
  if (owner === undefined) {
    expectations.forget(key);
    return done; // deleted since it was queued
  }
  // Evaluated before the Pods are listed; otherwise Pods observed in between would be counted twice.
  const mayAct = expectations.satisfied(key) && !owner.metadata.deletionTimestamp;
  const owned = await claimPods(ctx, owner, signal);
  const failure = mayAct ? await applyPlan(ctx, key, owner, owned, signal) : undefined;
  const status = replicaStatus(owner, owned, failure?.shown, ctx.clock.now());
  const stored = await updateStatus(ctx, owner, status, signal);
  if (failure !== undefined) throw failure.error;
  const pendingMs = expectations.pendingMs(key);
  const pending: Result = pendingMs === undefined ? done : { requeueAfterMs: pendingMs };
  if (!mayAct && !owner.metadata.deletionTimestamp) return { ...pending, decision: ownWritesPending };

  const { replicas = 1, minReadySeconds = 0 } = owner.spec;
  // A Pod becomes available after minReadySeconds without an event.
  if (minReadySeconds > 0 && stored.readyReplicas === replicas && stored.availableReplicas !== replicas) {
    const left = replicas - (stored.availableReplicas ?? 0);
    const requeueAfterMs = Math.min(minReadySeconds * 1000, pendingMs ?? Number.POSITIVE_INFINITY);
    return { requeueAfterMs, decision: minReadyPending(left, minReadySeconds) };
  }
  return pending;
}

function minReadyPending(pods: number, minReadySeconds: number): Outcome {
  const description = `${pods} ready pods do not count as available before minReadySeconds (${minReadySeconds} s) have passed`;
  return { verdict: "waiting", reason: "MinReadySeconds", description };
}

function claimPods<T extends ReplicasOwner>(ctx: ReplicasContext<T>, owner: T, signal: AbortSignal): Promise<Pod[]> {
  const { kind } = ctx;
  return claimObjects<Pod>({
    client: ctx.client,
    ref: pods,
    owner,
    ownerResource: kind.ref,
    selector: kind.selectorOf(owner),
    candidates: candidatesFor(ctx.pods, owner).filter(isActive),
    signal,
  });
}

interface Failure {
  /** Failure shown in the status; undefined when it must not be shown. */
  readonly shown: ReplicaFailure | undefined;
  readonly error: unknown;
}

async function applyPlan<T extends ReplicasOwner>(
  ctx: ReplicasContext<T>,
  key: ObjectKey,
  owner: T,
  owned: readonly Pod[],
  signal: AbortSignal,
): Promise<Failure | undefined> {
  const { kind, expectations } = ctx;
  const { replicas = 1, template = emptyTemplate } = owner.spec;
  const rules = {
    now: ctx.clock.now(),
    byCost: ctx.featureGates.enabled("PodDeletionCost"),
    byMagnitude: ctx.featureGates.enabled("LogarithmicScaleDown"),
  };
  const plan = planReplicas({ wanted: replicas, active: owned, related: () => relatedPods(ctx, owner), rules });

  if (plan.create > 0 || plan.delete.length > 0) {
    const { create, delete: toDelete } = plan;
    ctx.log.v(2)?.info("Changing replicas", { owner: key, need: replicas, creating: create, deleting: toDelete.length });
  }
  const create = Array.from({ length: plan.create }, () => template);
  const changes = { owner, ownerResource: kind.ref, create, delete: plan.delete };
  const { creating, deleting } = await applyPodChanges(ctx, expectations, changes, signal);
  if (creating !== undefined) return { shown: { reason: "FailedCreate", message: messageOf(creating) }, error: creating };
  if (deleting !== undefined) return { shown: { reason: "FailedDelete", message: messageOf(deleting) }, error: deleting };
  return undefined;
}

const emptyTemplate: PodTemplateSpec = { metadata: {}, spec: { containers: [] } };

/**
 * Pods of all owners that share the owner's controller. Empty without a controller: placement then does not affect the
 * deletion order.
 * Source: replica_set.go getIndirectlyRelatedPods
 */
function relatedPods<T extends ReplicasOwner>(ctx: ReplicasContext<T>, owner: T): Pod[] {
  const { owners, pods: podInformer } = ctx;
  const controller = controllerOf(owner);
  if (controller === undefined) return [];
  return owners.lister
    .controlledBy({ metadata: { uid: controller.uid } })
    .filter(({ metadata }) => metadata.namespace === owner.metadata.namespace)
    .flatMap((sibling) => podInformer.lister.controlledBy(sibling));
}

/** Writes the status if it changed; returns the computed status. */
async function updateStatus<T extends ReplicasOwner>(
  ctx: ReplicasContext<T>,
  owner: T,
  status: ReplicaSetStatus,
  signal: AbortSignal,
): Promise<ReplicaSetStatus> {
  const { kind } = ctx;
  if (owner.status !== undefined && semanticEqual(withoutZeros(owner.status), withoutZeros(status))) return status;
  await writeStatus(ctx.client, kind.ref, owner, status, signal);
  return status;
}

/** For comparison: the API omits zero counts. */
function withoutZeros(status: ReplicaSetStatus): object {
  return Object.fromEntries(Object.entries(status).filter(([, value]) => value !== 0));
}
