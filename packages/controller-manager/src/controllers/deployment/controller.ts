import { type Controller, done, type Result } from "@coxswain/apimachinery/controller/controller";
import { enqueueBy, enqueueSelf, type SourceQueue } from "@coxswain/apimachinery/controller/sources";
import { hasCause, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { keyOf, type ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { Deployment, ReplicaSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { deployments, replicaSets } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";
import type { ControllerContext } from "../../controller-context.ts";
import { defineController } from "../../define-controller.ts";
import { controllingOwner, ownerEventHandlers } from "../../pods/owner-event-handlers.ts";
import { candidatesFor, claimObjects } from "../../pods/ownership.ts";
import { withCondition } from "./conditions.ts";
import { type DeploymentContext, newDeploymentContext, type Rollout } from "./context.ts";
import { findingNewSet, planCleanup } from "./history.ts";
import { syncNewSet } from "./new-replica-set.ts";
import { isComplete, nextProgressCheckMs, pausedCondition, withProgress } from "./progress.ts";
import { planScaling, wasScaled } from "./proportional-scaling.ts";
import { oldPodsRun, planScaleDownAll } from "./recreate.ts";
import { desiredReplicas } from "./replica-counts.ts";
import { planRollback, rollbackRevision } from "./rollback.ts";
import { planScaleDown, planScaleUp } from "./rolling-update.ts";
import { type CountedStatus, calculateStatus, countedForm, storedForm } from "./status.ts";
import { resizeSet, resizeSets, writeDeploymentStatus } from "./writes.ts";

/**
 * deployment-controller: scales ReplicaSets until the one with the current Pod template has all replicas.
 * Watches Deployments (own key), ReplicaSets (key of the controlling Deployment; an orphan enqueues every Deployment that
 * selects it) and Pods (Recreate only: deletion of the last old Pod). Writes ReplicaSets, deployments/status and Events on
 * the Deployment.
 */
export function newDeploymentController(base: ControllerContext): Controller {
  const ctx = newDeploymentContext(base);
  const selectorOf = ({ spec }: Deployment) => LabelSelector.ofCached(spec.selector);
  return defineController(ctx, {
    name: "deployment",
    sources: [
      enqueueSelf(ctx.deployments),
      enqueueBy(ctx.replicaSets, (queue) => ownerEventHandlers({ owners: ctx.deployments, selectorOf }, queue)),
      enqueueBy(ctx.pods, (queue) => podHandlers(ctx, queue)),
    ],
    reconcile,
    workers: ctx.config.concurrency.deployment,
    maxRetries: 15,
  });
}

/** Only the Recreate strategy depends on Pods: the new ReplicaSet is created after the last old Pod is gone. */
function podHandlers(ctx: DeploymentContext, queue: SourceQueue) {
  return {
    deleted(pod: Pod) {
      const set = controllingOwner(ctx.replicaSets, pod);
      const deployment = set === undefined ? undefined : controllingOwner(ctx.deployments, set);
      if (deployment?.spec.strategy?.type !== "Recreate") return;
      const siblings = ctx.replicaSets.lister.controlledBy(deployment);
      const hasPods = siblings.some((sibling) => ctx.pods.lister.controlledBy(sibling).length > 0);
      if (!hasPods) queue.enqueue(keyOf(deployment));
    },
  };
}

/** Level-based: acts on the cached state, not on the event that enqueued the key. A rejection is retried with backoff. */
async function reconcile(ctx: DeploymentContext, key: ObjectKey, signal: AbortSignal): Promise<Result> {
  const deployment = ctx.deployments.lister.get(key);
  if (deployment === undefined) return done; // deleted since it was queued
  const rollout: Rollout = { ctx, signal, deployment };
  const selector = LabelSelector.ofCached(deployment.spec.selector);
  if (selector.empty) return rejectEmptySelector(rollout);
  try {
    return await syncRollout(rollout, await claimSets(rollout, selector));
  } catch (err) {
    if (hasCause(err, "NamespaceTerminating")) return done; // retrying cannot succeed
    throw err;
  }
}

async function syncRollout(rollout: Rollout, sets: readonly ReplicaSet[]): Promise<Result> {
  const newSet = await rollout.ctx.turns.run(findingNewSet(rollout.deployment, sets));
  const oldSets = sets.filter(({ metadata }) => metadata.uid !== newSet?.metadata.uid);
  if (rollout.deployment.metadata.deletionTimestamp) return updateStatus(rollout, newSet, oldSets, false);

  const condition = pausedCondition(rollout.deployment, rollout.ctx.clock.now());
  if (condition !== undefined) {
    const { deployment } = rollout;
    const conditions = withCondition(deployment.status?.conditions ?? [], condition);
    await writeDeploymentStatus(rollout, { ...deployment, status: { ...deployment.status, conditions } });
  }
  const paused = rollout.deployment.spec.paused === true;
  const revision = paused ? undefined : rollbackRevision(rollout.deployment);
  if (revision !== undefined) return rollBack(rollout, newSet, oldSets, revision);
  if (paused || wasScaled(rollout.deployment, sets)) return scale(rollout, newSet, oldSets, paused);
  return rollout.deployment.spec.strategy?.type === "Recreate"
    ? recreate(rollout, newSet, oldSets)
    : rollingUpdate(rollout, newSet, oldSets);
}

/** Updates only the Deployment's template; the change is rolled out in the next reconciliation. */
async function rollBack(
  rollout: Rollout,
  found: ReplicaSet | undefined,
  oldSets: readonly ReplicaSet[],
  revision: bigint,
): Promise<Result> {
  const { ctx, signal } = rollout;
  const newSet = (await syncNewSet(rollout, found, oldSets, true))!;
  const { deployment, event } = planRollback(rollout.deployment, [...oldSets, newSet], revision);
  await ctx.client.update<Deployment>(deployments, deployment, { signal });
  ctx.recorder.event(deployment, ...event);
  return done;
}

/** Scales the ReplicaSets to the Deployment's size without advancing the rollout. Source: sync.go sync */
async function scale(rollout: Rollout, found: ReplicaSet | undefined, oldSets: ReplicaSet[], paused: boolean): Promise<Result> {
  const newSet = await syncNewSet(rollout, found, oldSets, false);
  const sets = newSet === undefined ? oldSets : [newSet, ...oldSets];
  const resized = await resizeSets(rollout, sets, planScaling(rollout.deployment, newSet, oldSets));
  const [newNow, oldNow] = split(resized, newSet);
  if (paused && rollbackRevision(rollout.deployment) === undefined) await cleanUp(rollout, oldNow);
  return updateStatus(rollout, newNow, oldNow, false);
}

/** Source: rolling.go rolloutRolling */
async function rollingUpdate(rollout: Rollout, found: ReplicaSet | undefined, oldSets: ReplicaSet[]): Promise<Result> {
  const newSet = (await syncNewSet(rollout, found, oldSets, true))!;
  const up = planScaleUp(rollout.deployment, newSet, [newSet, ...oldSets]);
  if (up !== undefined) return updateStatus(rollout, await resizeSet(rollout, up), oldSets, true);
  const down = planScaleDown(rollout.deployment, newSet, oldSets);
  if (down.length > 0) return updateStatus(rollout, newSet, await resizeSets(rollout, oldSets, down), true);
  if (isComplete(rollout.deployment, countedForm(rollout.deployment.status))) await cleanUp(rollout, oldSets);
  return updateStatus(rollout, newSet, oldSets, true);
}

/** Source: recreate.go rolloutRecreate */
async function recreate(rollout: Rollout, found: ReplicaSet | undefined, oldSets: ReplicaSet[]): Promise<Result> {
  // The new ReplicaSet is not created before the old Pods are gone.
  const existing = await syncNewSet(rollout, found, oldSets, false);
  const down = planScaleDownAll(oldSets);
  if (down.length > 0) return updateStatus(rollout, existing, await resizeSets(rollout, oldSets, down), true);
  const lister = rollout.ctx.pods.lister;
  const podsOf = new Map(
    [existing, ...oldSets].map((set) => [set?.metadata.uid ?? "", set === undefined ? [] : lister.controlledBy(set)]),
  );
  if (oldPodsRun(existing, oldSets, podsOf)) return updateStatus(rollout, existing, oldSets, true);

  const newSet = existing ?? (await syncNewSet(rollout, undefined, oldSets, true))!;
  const sized = await resizeSet(rollout, { replicaSet: newSet, replicas: desiredReplicas(rollout.deployment) });
  if (isComplete(rollout.deployment, countedForm(rollout.deployment.status))) await cleanUp(rollout, oldSets);
  return updateStatus(rollout, sized, oldSets, true);
}

/** @param rolling false when only counts are updated: paused, scaled or being deleted */
async function updateStatus(
  rollout: Rollout,
  newSet: ReplicaSet | undefined,
  oldSets: readonly ReplicaSet[],
  rolling: boolean,
): Promise<Result> {
  const { ctx, deployment } = rollout;
  const now = ctx.clock.now();
  const all = newSet === undefined ? oldSets : [...oldSets, newSet];
  const counted = calculateStatus(deployment, newSet, all, now);
  const status: CountedStatus = rolling ? withProgress(deployment, counted, newSet, all, now) : counted;
  if (semanticEqual(countedForm(deployment.status), status)) {
    const requeueAfterMs = rolling ? nextProgressCheckMs(deployment, status, now) : undefined;
    return requeueAfterMs === undefined ? done : { requeueAfterMs };
  }
  await writeDeploymentStatus(rollout, { ...deployment, status: storedForm(status) });
  return done;
}

async function cleanUp({ ctx, deployment, signal }: Rollout, oldSets: readonly ReplicaSet[]): Promise<void> {
  for (const { metadata } of planCleanup(deployment, oldSets)) {
    const { namespace, name = "" } = metadata;
    ctx.log.v(4)?.info("Trying to cleanup replica set for deployment", { replicaSet: name });
    await ctx.client.delete(replicaSets, { namespace, name }, { signal }).catch((err) => {
      if (!isNotFound(err)) throw err;
    });
  }
}

function claimSets({ ctx, deployment, signal }: Rollout, selector: LabelSelector): Promise<ReplicaSet[]> {
  return claimObjects<ReplicaSet>({
    client: ctx.client,
    ref: replicaSets,
    owner: deployment,
    ownerResource: deployments,
    selector,
    candidates: candidatesFor(ctx.replicaSets, deployment),
    signal,
  });
}

async function rejectEmptySelector(rollout: Rollout): Promise<Result> {
  const { ctx, deployment } = rollout;
  const message = "This deployment is selecting all pods. A non-empty selector is required.";
  ctx.recorder.event(deployment, "Warning", "SelectingAll", message);
  const { generation: observedGeneration = 0 } = deployment.metadata;
  if ((deployment.status?.observedGeneration ?? 0) >= observedGeneration) return done;
  await writeDeploymentStatus(rollout, { ...deployment, status: { ...deployment.status, observedGeneration } });
  return done;
}

function split(sets: readonly ReplicaSet[], newSet: ReplicaSet | undefined): [ReplicaSet | undefined, ReplicaSet[]] {
  const isNew = ({ metadata }: ReplicaSet): boolean => metadata.uid === newSet?.metadata.uid;
  return [sets.find(isNew), sets.filter((set) => !isNew(set))];
}
