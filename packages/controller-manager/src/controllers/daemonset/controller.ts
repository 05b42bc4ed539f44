import { type Controller, done, type Result } from "@coxswain/apimachinery/controller/controller";
import { type Expectations, newExpectations } from "@coxswain/apimachinery/controller/expectations";
import { enqueueBy, enqueueSelf, type SourceQueue } from "@coxswain/apimachinery/controller/sources";
import type { Outcome } from "@coxswain/apimachinery/decisions/decision-log";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { hasCause } from "@coxswain/apimachinery/objects/errors/predicates";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { keyOf, type ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { ControllerRevision, DaemonSet, DaemonSetStatus } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { Node, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { controllerRevisions, daemonSets, nodes, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";
import type { ControllerContext } from "../../controller-context.ts";
import { defineController } from "../../define-controller.ts";
import { applyPodChanges, ownWritesPending } from "../../pods/apply-pod-changes.ts";
import { enqueueWhenAvailable, type Ownership, ownerEventHandlers } from "../../pods/owner-event-handlers.ts";
import { byOrphan, candidatesFor, claimObjects, orphanIndex } from "../../pods/ownership.ts";
import { writeStatus } from "../../pods/write-status.ts";
import { eligibilityFor } from "./eligibility.ts";
import { type FailedPodBackoff, newFailedPodBackoff } from "./failed-pod-backoff.ts";
import { groupByNode, type Plan, type View } from "./node-pods.ts";
import { planNodes } from "./plan.ts";
import { pinnedTo, podTemplateOf } from "./pod-template.ts";
import { cleanUpHistory, syncHistory } from "./revisions.ts";
import { planRollingUpdate } from "./rolling-update.ts";
import { daemonSetStatus } from "./status.ts";

/**
 * daemonset-controller: runs one Pod of the current template on each eligible node.
 * Watches DaemonSets (own key), Pods and ControllerRevisions (key of the controlling DaemonSet; an orphan enqueues every
 * DaemonSet that selects it) and Nodes (every DaemonSet whose eligibility changes). Writes Pods, ControllerRevisions,
 * daemonsets/status and Events on the DaemonSet.
 * Source: pkg/controller/daemon
 */
export function newDaemonSetController(base: ControllerContext): Controller {
  const ctx: DaemonSetContext = {
    ...base,
    daemonSets: base.informers.for<DaemonSet>(daemonSets),
    pods: base.informers.for<Pod>(pods),
    nodes: base.informers.for<Node>(nodes),
    revisions: base.informers.for<ControllerRevision>(controllerRevisions),
    expectations: newExpectations(base.clock),
    backoff: newFailedPodBackoff(base.clock),
  };
  const { expectations } = ctx;
  ctx.pods.addIndex(orphanIndex, byOrphan);
  ctx.revisions.addIndex(orphanIndex, byOrphan);
  ctx.daemonSets.addHandler({ deleted: (daemonSet) => expectations.forget(keyOf(daemonSet)) });
  const ownership = { owners: ctx.daemonSets, selectorOf };
  return defineController(ctx, {
    name: "daemonset",
    sources: [
      enqueueSelf(ctx.daemonSets),
      enqueueBy(ctx.pods, (queue) => ownerEventHandlers(podOwnership(ctx), queue)),
      enqueueBy(ctx.revisions, (queue) => ownerEventHandlers(ownership, queue)),
      enqueueBy(ctx.nodes, (queue) => nodeHandlers(ctx, queue)),
    ],
    reconcile,
    workers: concurrentSyncs,
  });
}

/** Not configurable by a flag. Source: pkg/controller/daemon/config/v1alpha1 */
const concurrentSyncs = 2;
/**
 * Upper bound of creations or deletions in one reconciliation; the rest follows in the next one.
 * Source: daemon_controller.go BurstReplicas
 */
const burstReplicas = 250;

interface DaemonSetContext extends ControllerContext {
  readonly daemonSets: SharedInformer<DaemonSet>;
  readonly pods: SharedInformer<Pod>;
  readonly nodes: SharedInformer<Node>;
  readonly revisions: SharedInformer<ControllerRevision>;
  readonly expectations: Expectations;
  readonly backoff: FailedPodBackoff;
}

const selectorOf = ({ spec }: DaemonSet): LabelSelector => LabelSelector.ofCached(spec.selector);

function podOwnership(ctx: DaemonSetContext): Ownership<DaemonSet, Pod> {
  const { daemonSets: owners, expectations } = ctx;
  return {
    owners,
    selectorOf,
    created: (key) => expectations.creationObserved(key),
    removed: (key, { metadata }) => expectations.deletionObserved(key, metadata.uid ?? ""),
    changed: enqueueWhenAvailable(({ spec }) => spec.minReadySeconds ?? 0),
  };
}

/** Node status updates are frequent; a DaemonSet is enqueued only when its eligibility for the node changes. */
function nodeHandlers(ctx: DaemonSetContext, queue: SourceQueue) {
  const { daemonSets: owners } = ctx;
  const enqueueWhere = (differs: (daemonSet: DaemonSet) => boolean): void => {
    for (const daemonSet of owners.lister.list()) if (differs(daemonSet)) queue.enqueue(keyOf(daemonSet));
  };
  const fits = (node: Node) => enqueueWhere((daemonSet) => eligibilityFor(daemonSet)(node).shouldContinue);
  return {
    added: fits,
    updated(old: Node, now: Node) {
      const same = semanticEqual(old.metadata.labels, now.metadata.labels) && semanticEqual(old.spec?.taints, now.spec?.taints);
      if (same) return;
      enqueueWhere((daemonSet) => {
        const eligibility = eligibilityFor(daemonSet);
        return !semanticEqual(eligibility(old), eligibility(now));
      });
    },
    deleted: fits,
  };
}

/** Level-based: acts on the cached state, not on the event that enqueued the key. A rejection is retried with backoff. */
async function reconcile(ctx: DaemonSetContext, key: ObjectKey, signal: AbortSignal): Promise<Result> {
  const { expectations } = ctx;
  const daemonSet = ctx.daemonSets.lister.get(key);
  if (daemonSet === undefined) {
    expectations.forget(key);
    return done; // deleted since it was queued
  }
  if (selectorOf(daemonSet).empty) {
    const message = "This daemon set is selecting all pods. A non-empty selector is required.";
    ctx.recorder.event(daemonSet, "Warning", "SelectingAll", message);
    return done;
  }
  // Its revisions may be orphaned or deleted already, so the Pods cannot be classified.
  if (daemonSet.metadata.deletionTimestamp) return done;
  try {
    return await sync(ctx, key, daemonSet, signal);
  } catch (err) {
    if (hasCause(err, "NamespaceTerminating")) return done; // retrying cannot succeed
    throw err;
  }
}

async function sync(ctx: DaemonSetContext, key: ObjectKey, daemonSet: DaemonSet, signal: AbortSignal): Promise<Result> {
  const { expectations } = ctx;
  const history = await syncHistory(ctx, daemonSet, signal);
  // Evaluated before the Pods are listed; otherwise Pods observed in between would be counted twice.
  const mayAct = expectations.satisfied(key);
  const own = await claimPods(ctx, daemonSet, signal);
  const eligibility = eligibilityFor(daemonSet);
  const view: View = {
    daemonSet,
    nodes: ctx.nodes.lister.list().map((node) => ({ name: node.metadata.name ?? "", ...eligibility(node) })),
    pods: groupByNode(own),
    hash: history.hash,
    surgeEnabled: ctx.featureGates.enabled("DaemonSetUpdateSurge"),
    now: ctx.clock.now(),
  };
  let failure: { error: unknown } | undefined;
  let retryAfterMs: number | undefined;
  if (mayAct) {
    try {
      retryAfterMs = await applyPlan(ctx, view, signal);
      await cleanUpHistory(ctx, daemonSet, history, own, signal);
    } catch (error) {
      failure = { error };
    }
  }
  // The pods and the time of now: the changes may have taken a while, in which pods came, went and became ready.
  const latest: View = { ...view, pods: groupByNode(await claimPods(ctx, daemonSet, signal)), now: ctx.clock.now() };
  const status = daemonSetStatus(latest, mayAct);
  if (!sameStatus(daemonSet.status, status)) await writeStatus(ctx.client, daemonSets, daemonSet, status, signal);
  if (failure !== undefined) throw failure.error;
  const pendingMs = expectations.pendingMs(key);
  if (!mayAct) return { ...(pendingMs !== undefined && { requeueAfterMs: pendingMs }), decision: ownWritesPending };
  // A Pod becomes available after minReadySeconds without an event.
  const { minReadySeconds = 0 } = daemonSet.spec;
  const availableAfterMs =
    minReadySeconds > 0 && status.numberReady !== status.numberAvailable ? minReadySeconds * 1000 : undefined;
  const requeueAfterMs = Math.min(...[retryAfterMs, availableAfterMs, pendingMs].map((ms) => ms ?? Number.POSITIVE_INFINITY));
  const decision: Outcome | undefined =
    retryAfterMs === undefined
      ? undefined
      : { verdict: "waiting", reason: "FailedPodBackOff", description: "a failed pod is replaced after its back-off" };
  return Number.isFinite(requeueAfterMs) ? { requeueAfterMs, decision } : done;
}

function claimPods(ctx: DaemonSetContext, daemonSet: DaemonSet, signal: AbortSignal): Promise<Pod[]> {
  const { pods: podInformer } = ctx;
  return claimObjects<Pod>({
    client: ctx.client,
    ref: pods,
    owner: daemonSet,
    ownerResource: daemonSets,
    selector: selectorOf(daemonSet),
    candidates: candidatesFor(podInformer, daemonSet),
    signal,
  });
}

/**
 * Executes the plan for all nodes.
 * @returns delay in ms until the next failed Pod in backoff may be deleted; undefined without one
 */
async function applyPlan(ctx: DaemonSetContext, view: View, signal: AbortSignal): Promise<number | undefined> {
  const { backoff } = ctx;
  const { daemonSet } = view;
  const { uid } = daemonSet.metadata;
  const generation = daemonSet.status?.observedGeneration ?? 0;
  const backoffKey = (nodeName: string): string => `${uid}/${generation}/${nodeName}`;
  const plan = planNodes(view, (nodeName) => backoff.remainingMs(backoffKey(nodeName)));
  for (const { pod, nodeName } of plan.failed) {
    backoff.next(backoffKey(nodeName));
    const { namespace, name } = pod.metadata;
    const message = `Found failed daemon pod ${namespace}/${name} on node ${nodeName}, will try to kill it`;
    ctx.recorder.event(daemonSet, "Warning", "FailedDaemonPod", message);
  }
  const settled = plan.create.length === 0 && plan.delete.length === 0;
  const isRolling = settled && daemonSet.spec.updateStrategy?.type === "RollingUpdate";
  await writeChanges(ctx, view, isRolling ? planRollingUpdate(view) : plan, signal);
  return plan.retryAfterMs;
}

/** @throws the first failure, after all requests were attempted */
async function writeChanges(ctx: DaemonSetContext, { daemonSet, hash }: View, plan: Plan, signal: AbortSignal): Promise<void> {
  const { expectations } = ctx;
  const template = podTemplateOf(daemonSet, hash);
  const changes = {
    owner: daemonSet,
    ownerResource: daemonSets,
    create: plan.create.slice(0, burstReplicas).map((nodeName) => pinnedTo(template, nodeName)),
    delete: plan.delete.slice(0, burstReplicas),
  };
  const { creating, deleting } = await applyPodChanges(ctx, expectations, changes, signal);
  if (creating !== undefined) throw creating;
  if (deleting !== undefined) throw deleting;
}

/** Compares ignoring zero counts, which the API omits. */
function sameStatus(a: DaemonSetStatus | undefined, b: DaemonSetStatus): boolean {
  const nonZero = (status: object): object => Object.fromEntries(Object.entries(status).filter(([, value]) => value !== 0));
  return a !== undefined && semanticEqual(nonZero(a), nonZero(b));
}
