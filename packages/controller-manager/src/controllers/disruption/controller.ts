import { type Controller, done, type Result } from "@coxswain/apimachinery/controller/controller";
import { enqueueMapped, enqueueSelf, needsSynced } from "@coxswain/apimachinery/controller/sources";
import type { Outcome } from "@coxswain/apimachinery/decisions/decision-log";
import { outcomeOfError } from "@coxswain/apimachinery/decisions/outcome-of-error";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { isConflict, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { formatGroupResource, parseGroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";
import { keyOf, type ObjectKey, toKey } from "@coxswain/apimachinery/objects/meta/object-key";
import { controllerOf } from "@coxswain/apimachinery/objects/meta/owner-references";
import type { OwnerReference } from "@coxswain/apimachinery/objects/meta/types";
import type { Deployment, ReplicaSet, StatefulSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { Pod, ReplicationController } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { PodDisruptionBudget, PodDisruptionBudgetStatus } from "@coxswain/apimachinery/objects/schema/kinds/policy/v1";
import {
  deployments,
  podDisruptionBudgets,
  pods,
  replicaSets,
  replicationControllers,
  statefulSets,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";
import type { ControllerContext } from "../../controller-context.ts";
import { defineController } from "../../define-controller.ts";
import { newScaleClient, type ScaleClient } from "../../scale/scale-client.ts";
import { type ControllerScale, expectedPods, NoControllerError } from "./plan.ts";
import { countHealthy, desiredStatus, disruptionsOf, failedStatus } from "./status.ts";

/**
 * disruption-controller: maintains in each PodDisruptionBudget's status the number of Pods that may be evicted.
 * Watches PodDisruptionBudgets (own key) and Pods (keys of the budgets that select them); reads ReplicationControllers,
 * ReplicaSets, Deployments, StatefulSets and the scale of other controllers; writes poddisruptionbudgets/status.
 * Source: pkg/controller/disruption/disruption.go
 */
export function newDisruptionController(base: ControllerContext): Controller {
  const { informers } = base;
  const ctx: DisruptionContext = {
    ...base,
    scales: newScaleClient(base.client, base.clock),
    budgets: informers.for(podDisruptionBudgets),
    pods: informers.for(pods),
    replicationControllers: informers.for(replicationControllers),
    replicaSets: informers.for(replicaSets),
    deployments: informers.for(deployments),
    statefulSets: informers.for(statefulSets),
  };
  return defineController(ctx, {
    name: "disruption",
    sources: [
      enqueueSelf(ctx.budgets),
      enqueueMapped(ctx.pods, (pod) => budgetsOf(ctx, pod)),
      needsSynced(ctx.replicationControllers),
      needsSynced(ctx.replicaSets),
      needsSynced(ctx.deployments),
      needsSynced(ctx.statefulSets),
    ],
    reconcile,
  });
}

interface DisruptionContext extends ControllerContext {
  readonly scales: ScaleClient;
  readonly budgets: SharedInformer<PodDisruptionBudget>;
  readonly pods: SharedInformer<Pod>;
  readonly replicationControllers: SharedInformer<ReplicationController>;
  readonly replicaSets: SharedInformer<ReplicaSet>;
  readonly deployments: SharedInformer<Deployment>;
  readonly statefulSets: SharedInformer<StatefulSet>;
}

/** All budgets that select a Pod. More than one is reported as an Event because the eviction API supports only one. */
function budgetsOf(ctx: DisruptionContext, pod: Pod): ObjectKey[] {
  const { budgets } = ctx;
  const { namespace = "", name } = pod.metadata;
  const selecting = budgets.lister.inNamespace(namespace).filter((budget) => selectorOf(budget)?.matches(pod.metadata.labels));
  if (selecting.length > 1) {
    const message = `Pod "${namespace}"/"${name}" matches multiple PodDisruptionBudgets.  Chose "${selecting[0]?.metadata.name}" arbitrarily.`;
    ctx.recorder.event({ ...pod, apiVersion: "v1", kind: "Pod" }, "Warning", "MultiplePodDisruptionBudgets", message);
  }
  return selecting.map(keyOf);
}

/** Selector of the budget. An invalid one results in undefined and selects nothing. */
function selectorOf({ spec }: PodDisruptionBudget): LabelSelector | undefined {
  try {
    return LabelSelector.ofCached(spec?.selector);
  } catch {
    return undefined;
  }
}

async function reconcile(ctx: DisruptionContext, key: ObjectKey, signal: AbortSignal): Promise<Result> {
  const budget = ctx.budgets.lister.get(key);
  if (budget === undefined) return done;
  try {
    return await sync(ctx, budget, signal);
  } catch (err) {
    if (isConflict(err) || signal.aborted) throw err;
    ctx.log.error("Failed to sync PDB", err, { podDisruptionBudget: key });
    await writeStatus(ctx, budget, failedStatus(budget, messageOf(err), ctx.clock.now()), signal);
    return { decision: outcomeOfError(err) };
  }
}

async function sync(ctx: DisruptionContext, budget: PodDisruptionBudget, signal: AbortSignal): Promise<Result> {
  const recordEvent = (type: "Normal" | "Warning", reason: string, message: string): void =>
    ctx.recorder.event({ ...budget, apiVersion: "policy/v1", kind: "PodDisruptionBudget" }, type, reason, message);
  const selected = selectedPods(ctx, budget, recordEvent);
  if (selected.length === 0) recordEvent("Normal", "NoPods", "No matching pods found");
  const scaleOf = (controller: OwnerReference) => findScale(ctx, controller, budget.metadata.namespace, signal);
  const expected = await expectedPods(budget.spec, selected, scaleOf).catch((err) => {
    if (err instanceof NoControllerError) recordEvent("Warning", "NoControllers", err.message);
    const message = `Failed to calculate the number of expected pods: ${messageOf(err)}`;
    recordEvent("Warning", "CalculateExpectedPodCountFailed", message);
    throw err;
  });
  if (expected.unmanaged.length > 0)
    ctx.log.v(4)?.info("found unmanaged pods associated with this PDB", { pods: expected.unmanaged.join(",") });

  const now = ctx.clock.now();
  const disruptions = disruptionsOf(budget, selected, now);
  for (const pod of disruptions.overdue) {
    // The namespace twice, as in upstream's message.
    const { namespace } = budget.metadata;
    const message = `Pod was expected by PDB ${namespace}/${namespace} to be deleted but it wasn't`;
    ctx.recorder.event({ ...pod, apiVersion: "v1", kind: "Pod" }, "Warning", "NotDeleted", message);
  }
  const healthy = countHealthy(selected, disruptions.pending, now);
  const status = desiredStatus(budget, expected, healthy, disruptions.pending, now);
  if (status !== undefined) await writeStatus(ctx, budget, status, signal);
  // Plus 1 ms, because a Pod is overdue only after that time.
  const decision = noneAllowed(status ?? budget.status);
  return disruptions.recheckAt === undefined ? { decision } : { requeueAfterMs: disruptions.recheckAt - now + 1, decision };
}

/** undefined when evictions are allowed. */
function noneAllowed(status: PodDisruptionBudgetStatus | undefined): Outcome | undefined {
  if (status === undefined || status.disruptionsAllowed > 0) return undefined;
  const { currentHealthy, desiredHealthy, expectedPods } = status;
  const description =
    expectedPods === 0
      ? "selects no pods, so it allows no eviction"
      : `allows no eviction: ${currentHealthy} of ${expectedPods} pods are healthy, and ${desiredHealthy} have to be`;
  // A budget that allows no disruption is reported as waiting only while fewer pods are healthy than it requires.
  return { verdict: currentHealthy < desiredHealthy ? "waiting" : "done", reason: "NoDisruptionsAllowed", description };
}

function selectedPods(
  ctx: DisruptionContext,
  { metadata, spec }: PodDisruptionBudget,
  recordEvent: (type: "Normal" | "Warning", reason: string, message: string) => void,
): Pod[] {
  const { pods: podInformer } = ctx;
  try {
    return podInformer.lister.select(LabelSelector.ofCached(spec?.selector), metadata.namespace);
  } catch (err) {
    recordEvent("Warning", "NoPods", `Failed to get pods: ${messageOf(err)}`);
    throw err;
  }
}

// ---- Scales ------------------------------------------------------------------------------------------------------------

/** Scale of the controller from the informer caches, otherwise from the API server. Source: disruption.go finders */
async function findScale(
  ctx: DisruptionContext,
  controller: OwnerReference,
  namespace: string | undefined,
  signal: AbortSignal,
): Promise<ControllerScale | undefined> {
  return cachedScale(ctx, controller, namespace) ?? (await servedScale(ctx, controller, namespace, signal));
}

function cachedScale(
  ctx: DisruptionContext,
  controller: OwnerReference,
  namespace: string | undefined,
): ControllerScale | undefined {
  const key = toKey(namespace, controller.name);
  const scaleOf = (found: ReplicationController | ReplicaSet | StatefulSet | Deployment | undefined, uid = controller.uid) =>
    found === undefined || found.metadata.uid !== uid ? undefined : { uid, replicas: found.spec?.replicas ?? 1 };
  const group = parseGroupVersion(controller.apiVersion)?.group;
  const inApps = group === "apps" || group === "extensions";
  if (controller.kind === "ReplicationController" && group === "") return scaleOf(ctx.replicationControllers.lister.get(key));
  if (controller.kind === "StatefulSet" && group === "apps") return scaleOf(ctx.statefulSets.lister.get(key));
  if (controller.kind !== "ReplicaSet" || !inApps) return undefined;
  const replicaSet = ctx.replicaSets.lister.get(key);
  // During a rollout several ReplicaSets belong to one Deployment, which defines the total number of Pods.
  const owner = replicaSet === undefined ? undefined : controllerOf(replicaSet);
  if (owner?.kind !== "Deployment") return scaleOf(replicaSet);
  return scaleOf(ctx.deployments.lister.get(toKey(namespace, owner.name)), owner.uid);
}

/**
 * Reads the scale subresource of the controller.
 * @throws Error for a kind that is not served or has no scale subresource
 */
async function servedScale(
  ctx: DisruptionContext,
  { apiVersion, kind, name, uid }: OwnerReference,
  namespace: string | undefined,
  signal: AbortSignal,
): Promise<ControllerScale | undefined> {
  const { scales } = ctx;
  const ref = await scales.resourceOf(apiVersion, kind);
  try {
    const { metadata, spec } = await scales.get(ref, { namespace, name }, signal);
    return metadata.uid === uid ? { uid, replicas: spec?.replicas ?? 0 } : undefined;
  } catch (err) {
    if (!isNotFound(err)) throw err;
    if (await scales.hasScale(ref, signal)) return undefined;
    throw new Error(`${formatGroupResource(ref)} does not implement the scale subresource`);
  }
}

async function writeStatus(
  { client }: ControllerContext,
  budget: PodDisruptionBudget,
  status: PodDisruptionBudgetStatus,
  signal: AbortSignal,
): Promise<void> {
  await client.update<PodDisruptionBudget>(podDisruptionBudgets, { ...budget, status }, { subresource: "status", signal });
}
