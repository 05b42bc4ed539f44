import { type Controller, done, type Result } from "@coxswain/apimachinery/controller/controller";
import { enqueueBy, enqueueSelf, needsSynced, type SourceQueue } from "@coxswain/apimachinery/controller/sources";
import { objectRef } from "@coxswain/apimachinery/decisions/decision";
import type { Outcome } from "@coxswain/apimachinery/decisions/decision-log";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { hasCause } from "@coxswain/apimachinery/objects/errors/predicates";
import { keyOf, type ObjectKey, toKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { ControllerRevision, StatefulSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { PersistentVolumeClaim, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import {
  controllerRevisions,
  persistentVolumeClaims,
  pods,
  statefulSets,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";
import type { ControllerContext } from "../../controller-context.ts";
import { defineController } from "../../define-controller.ts";
import { enqueueWhenAvailable, type Ownership, ownerEventHandlers } from "../../pods/owner-event-handlers.ts";
import { byOrphan, candidatesFor, claimObjects, orphanIndex } from "../../pods/ownership.ts";
import { isTerminating } from "../../pods/pod-state.ts";
import { writeStatus } from "../../pods/write-status.ts";
import { isMember, ordinalOf, parsePodName } from "./identity.ts";
import { revisionOf } from "./new-pod.ts";
import { isRunningAndAvailable, planSteps, type Step, type View } from "./plan.ts";
import { knownRevisions, ownRevisions, syncRevisions, truncateHistory } from "./revisions.ts";
import { isOutdated, statefulSetStatus } from "./status.ts";
import { applyStep } from "./writes.ts";

/**
 * statefulset-controller: maintains Pods with stable names, claims and ordering.
 * Watches StatefulSets (own key), Pods (key of the controlling StatefulSet; an orphan enqueues every StatefulSet that selects
 * it) and PersistentVolumeClaims (deletion of a claim of the StatefulSet); reads ControllerRevisions. Writes all of these,
 * statefulsets/status and Events on the StatefulSet.
 * Pod names are fixed, so a stale cache cannot cause duplicates: the API server rejects the second creation.
 * Source: pkg/controller/statefulset
 */
export function newStatefulSetController(base: ControllerContext): Controller {
  const ctx: StatefulSetContext = {
    ...base,
    sets: base.informers.for<StatefulSet>(statefulSets),
    pods: base.informers.for<Pod>(pods),
    claims: base.informers.for<PersistentVolumeClaim>(persistentVolumeClaims),
    revisions: base.informers.for<ControllerRevision>(controllerRevisions),
  };
  ctx.pods.addIndex(orphanIndex, byOrphan);
  ctx.revisions.addIndex(orphanIndex, byOrphan);
  return defineController(ctx, {
    name: "statefulset",
    sources: [
      enqueueSelf(ctx.sets),
      enqueueBy(ctx.pods, (queue) => ownerEventHandlers(podOwnership(ctx), queue)),
      enqueueBy(ctx.claims, (queue) => claimHandlers(ctx, queue)),
      needsSynced(ctx.revisions),
    ],
    reconcile,
    workers: ctx.config.concurrency.statefulSet,
  });
}

interface StatefulSetContext extends ControllerContext {
  readonly sets: SharedInformer<StatefulSet>;
  readonly pods: SharedInformer<Pod>;
  readonly claims: SharedInformer<PersistentVolumeClaim>;
  readonly revisions: SharedInformer<ControllerRevision>;
}

const selectorOf = ({ spec }: StatefulSet): LabelSelector => LabelSelector.ofCached(spec.selector);

function minReadySecondsOf({ featureGates }: ControllerContext, { spec }: StatefulSet): number {
  return featureGates.enabled("StatefulSetMinReadySeconds") ? (spec.minReadySeconds ?? 0) : 0;
}

function podOwnership(ctx: StatefulSetContext): Ownership<StatefulSet, Pod> {
  const { sets: owners } = ctx;
  return {
    owners,
    selectorOf,
    changed: enqueueWhenAvailable((set) => minReadySecondsOf(ctx, set)),
  };
}

/** Creation of a Pod may wait for the deletion of a stale claim. */
function claimHandlers(ctx: StatefulSetContext, queue: SourceQueue) {
  const { sets } = ctx;
  return {
    deleted({ metadata }: PersistentVolumeClaim) {
      const prefix = parsePodName(metadata.name ?? "")?.parent;
      for (const set of sets.lister.inNamespace(metadata.namespace ?? "")) {
        // First, since a set may have thousands of templates, and a namespace thousands of sets.
        if (prefix?.endsWith(`-${set.metadata.name}`) !== true) continue;
        const templates = set.spec.volumeClaimTemplates ?? [];
        if (templates.some(({ metadata: { name } }) => prefix === `${name}-${set.metadata.name}`)) queue.enqueue(keyOf(set));
      }
    },
  };
}

/** Level-based: acts on the cached state, not on the event that enqueued the key. A rejection is retried with backoff. */
async function reconcile(ctx: StatefulSetContext, key: ObjectKey, signal: AbortSignal): Promise<Result> {
  const set = ctx.sets.lister.get(key);
  if (set === undefined) return done; // deleted since it was queued
  try {
    return await sync(ctx, set, signal);
  } catch (err) {
    if (hasCause(err, "NamespaceTerminating")) return done; // retrying cannot succeed
    throw err;
  }
}

async function sync(ctx: StatefulSetContext, set: StatefulSet, signal: AbortSignal): Promise<Result> {
  const revisionsBefore = await ownRevisions(ctx, set, signal);
  const own = await claimPods(ctx, set, signal);
  const synced = set.metadata.deletionTimestamp
    ? knownRevisions(set, revisionsBefore)
    : await syncRevisions(ctx, set, revisionsBefore, signal);
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
      ? (name) => ctx.claims.lister.get(toKey(namespace, name))
      : undefined,
    now: ctx.clock.now(),
  };
  const taken: Step[] = [];
  let failure: { error: unknown } | undefined;
  try {
    for (const step of planSteps(view)) {
      await applyStep(ctx, set, step, signal);
      taken.push(step);
    }
  } catch (error) {
    failure = { error };
  }
  const status = statefulSetStatus(view, taken, collisionCount);
  if (isOutdated(set, status)) await writeStatus(ctx.client, statefulSets, set, status, signal);
  const { current, update } = revisions;
  const inUse = new Set([current.metadata.name ?? "", update.metadata.name ?? "", ...own.map(revisionOf)]);
  await truncateHistory(ctx, set, revisionsBefore, inUse, signal);
  if (failure !== undefined) throw failure.error;
  // A Pod becomes available after minReadySeconds without an event.
  const waits = minReadySeconds > 0 && status.availableReplicas !== (set.spec.replicas ?? 1);
  const decision = taken.length === 0 ? waitingFor(view) : undefined;
  return waits ? { requeueAfterMs: minReadySeconds * 1000, decision } : { ...done, decision };
}

/** Pure: the pod that an ordered rollout waits for: no pod is created or replaced before its predecessors are available. */
function waitingFor(view: View): Outcome | undefined {
  const { set, pods: own } = view;
  if (set.spec.podManagementPolicy === "Parallel" || set.metadata.deletionTimestamp) return undefined;
  const first = own
    .toSorted((a, b) => ordinalOf(a) - ordinalOf(b))
    .find((pod) => !isRunningAndAvailable(view, pod) || isTerminating(pod));
  if (first === undefined) return undefined;
  const what = isTerminating(first) ? "gone" : "running, ready and available";
  const summary = `goes on when its pod ${first.metadata.name} is ${what}: its pods come one after the other`;
  return { verdict: "waiting", reason: "PodNotAvailable", description: { summary, related: [objectRef(pods, first)] } };
}

function claimPods(ctx: StatefulSetContext, set: StatefulSet, signal: AbortSignal): Promise<Pod[]> {
  const { pods: podInformer } = ctx;
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
