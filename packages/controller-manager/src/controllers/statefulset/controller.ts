import { type Controller, done, newController, type Result } from "@coxswain/apimachinery/controller/controller";
import { enqueueBy, enqueueSelf, needsSynced, type SourceQueue } from "@coxswain/apimachinery/controller/sources";
import { hasCause } from "@coxswain/apimachinery/errors/predicates";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { keyOf, type ObjectKey, toKey } from "@coxswain/apimachinery/meta/object-key";
import type { ControllerRevision, StatefulSet } from "@coxswain/apimachinery/schema/kinds/apps/v1";
import type { PersistentVolumeClaim, Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { controllerRevisions, persistentVolumeClaims, pods, statefulSets } from "@coxswain/apimachinery/schema/kinds/resources";
import { LabelSelector } from "@coxswain/apimachinery/selectors/label-selector";
import type { ControllerContext } from "../../controller-context.ts";
import { type Ownership, ownedHandlers, wakeWhenAvailable } from "../../pods/owned-handlers.ts";
import { byOrphan, candidatesFor, claimObjects, orphanIndex } from "../../pods/ownership.ts";
import { writeStatus } from "../../pods/write-status.ts";
import { isMember, parsePodName } from "./identity.ts";
import { revisionOf } from "./new-pod.ts";
import { planSteps, type Step, type View } from "./plan.ts";
import { knownRevisions, ownRevisions, syncRevisions, truncateHistory } from "./revisions.ts";
import { isOutdated, statefulSetStatus } from "./status.ts";
import { takeStep } from "./take-step.ts";

/**
 * statefulset-controller: maintains Pods with stable names, claims and ordering.
 * Watches StatefulSets (own key), Pods (key of the controlling StatefulSet; an orphan enqueues every StatefulSet that selects
 * it) and PersistentVolumeClaims (deletion of a claim of the StatefulSet); reads ControllerRevisions. Writes all of these,
 * statefulsets/status and Events on the StatefulSet.
 * Pod names are fixed, so a stale cache cannot cause duplicates: the API server rejects the second creation.
 * Source: pkg/controller/statefulset
 */
export function newStatefulSetController(ctx: ControllerContext): Controller {
  const room: Room = {
    ctx,
    sets: ctx.informers.for<StatefulSet>(statefulSets),
    pods: ctx.informers.for<Pod>(pods),
    claims: ctx.informers.for<PersistentVolumeClaim>(persistentVolumeClaims),
    revisions: ctx.informers.for<ControllerRevision>(controllerRevisions),
  };
  room.pods.addIndex(orphanIndex, byOrphan);
  room.revisions.addIndex(orphanIndex, byOrphan);
  return newController({
    name: "statefulset",
    sources: [
      enqueueSelf(room.sets),
      enqueueBy(room.pods, (queue) => ownedHandlers(podOwnership(room), queue)),
      enqueueBy(room.claims, (queue) => claimHandlers(room, queue)),
      needsSynced(room.revisions),
    ],
    reconcile: (key, signal) => reconcile(room, key, signal),
    workers: ctx.config.concurrency.statefulSet,
    log: ctx.log,
    clock: ctx.clock,
    metrics: ctx.queueMetrics,
  });
}

interface Room {
  readonly ctx: ControllerContext;
  readonly sets: SharedInformer<StatefulSet>;
  readonly pods: SharedInformer<Pod>;
  readonly claims: SharedInformer<PersistentVolumeClaim>;
  readonly revisions: SharedInformer<ControllerRevision>;
}

const selectorOf = ({ spec }: StatefulSet): LabelSelector => LabelSelector.fromObject(spec.selector);

function minReadySecondsOf({ featureGates }: ControllerContext, { spec }: StatefulSet): number {
  return featureGates.enabled("StatefulSetMinReadySeconds") ? (spec.minReadySeconds ?? 0) : 0;
}

function podOwnership({ ctx, sets: owners }: Room): Ownership<StatefulSet, Pod> {
  return {
    owners,
    selectorOf,
    changed: wakeWhenAvailable((set) => minReadySecondsOf(ctx, set)),
  };
}

/** Creation of a Pod may wait for the deletion of a stale claim. */
function claimHandlers({ sets }: Room, queue: SourceQueue) {
  return {
    deleted({ metadata }: PersistentVolumeClaim) {
      const prefix = parsePodName(metadata.name ?? "")?.parent;
      for (const set of sets.lister.inNamespace(metadata.namespace ?? "")) {
        const templates = set.spec.volumeClaimTemplates ?? [];
        if (templates.some(({ metadata: { name } }) => prefix === `${name}-${set.metadata.name}`)) queue.enqueue(keyOf(set));
      }
    },
  };
}

/** Level-based: acts on the cached state, not on the event that enqueued the key. A rejection is retried with backoff. */
async function reconcile(room: Room, key: ObjectKey, signal: AbortSignal): Promise<Result> {
  const set = room.sets.lister.get(key);
  if (set === undefined) return done; // deleted since it was queued
  try {
    return await sync(room, set, signal);
  } catch (err) {
    if (hasCause(err, "NamespaceTerminating")) return done; // retrying cannot succeed
    throw err;
  }
}

async function sync(room: Room, set: StatefulSet, signal: AbortSignal): Promise<Result> {
  const { ctx } = room;
  const revisionsBefore = await ownRevisions(room, set, signal);
  const own = await claimPods(room, set, signal);
  const synced = set.metadata.deletionTimestamp
    ? knownRevisions(set, revisionsBefore)
    : await syncRevisions(room, set, revisionsBefore, signal);
  if (synced === undefined) return done; // being deleted and its revisions are gone already
  const { revisions, collisionCount } = synced;
  const minReadySeconds = minReadySecondsOf(ctx, set);
  const { namespace } = set.metadata;
  const view: View = {
    set,
    pods: own,
    revisions,
    minReadySeconds,
    claims: ctx.featureGates.enabled("StatefulSetAutoDeletePVC")
      ? (name) => room.claims.lister.get(toKey(namespace, name))
      : undefined,
    now: ctx.clock.now(),
  };
  const taken: Step[] = [];
  let failure: { error: unknown } | undefined;
  try {
    for (const step of planSteps(view)) {
      await takeStep(room, set, step, signal);
      taken.push(step);
    }
  } catch (error) {
    failure = { error };
  }
  const status = statefulSetStatus(view, taken, collisionCount);
  if (isOutdated(set, status)) await writeStatus(ctx.client, statefulSets, set, status, signal);
  const { current, update } = revisions;
  const inUse = new Set([current.metadata.name ?? "", update.metadata.name ?? "", ...own.map(revisionOf)]);
  await truncateHistory(room, set, revisionsBefore, inUse, signal);
  if (failure !== undefined) throw failure.error;
  // A Pod becomes available after minReadySeconds without an event.
  const waits = minReadySeconds > 0 && status.availableReplicas !== (set.spec.replicas ?? 1);
  return waits ? { requeueAfterMs: minReadySeconds * 1000 } : done;
}

function claimPods({ ctx, pods: podInformer }: Room, set: StatefulSet, signal: AbortSignal): Promise<Pod[]> {
  return claimObjects<Pod>({
    client: ctx.client,
    ref: pods,
    owner: set,
    ownerResource: statefulSets,
    selector: selectorOf(set),
    candidates: candidatesFor(podInformer, set),
    filter: (pod) => isMember(set, pod),
    signal,
  });
}
