import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { isConflict } from "@coxswain/apimachinery/objects/errors/predicates";
import {
  badRequest,
  conflict,
  forbidden,
  invalid,
  plainError,
  tooManyRequests,
} from "@coxswain/apimachinery/objects/errors/status-error";
import { deepClone } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { formatTime } from "@coxswain/apimachinery/objects/meta/time";
import type { DeleteOptions, KubeObject, Status } from "@coxswain/apimachinery/objects/meta/types";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Eviction, PodDisruptionBudget } from "@coxswain/apimachinery/objects/schema/kinds/policy/v1";
import type { Entry } from "../../../storage/storage.ts";
import { validateDeleteOptions } from "../../generic/delete-options.ts";
import { isDryRun } from "../../generic/dry-run.ts";
import type { SubresourceCall } from "../../generic/resource.ts";
import type { StrategyContext } from "../../generic/strategy.ts";
import { readSelector } from "./validation/pod-template.ts";

/** Limit of evictions not yet observed by the disruption controller; more indicate that it is not running. */
const mostDisruptedPods = 2000;
const retryAfterSeconds = 10;

/** Limit of retries for a pod that keeps changing. Source: eviction.go EvictionsRetry */
const mostTries = 20;

/**
 * Deletes a pod if its PodDisruptionBudget allows a disruption, or if the pod does not count as healthy.
 * @throws 429 when the budget does not allow it
 * Source: pkg/registry/core/pod/storage/eviction.go
 */
export async function createEviction(call: SubresourceCall): Promise<KubeObject> {
  const eviction: Eviction | undefined = call.body;
  if (!eviction) throw badRequest("not a Eviction object");
  if (call.name !== (eviction.metadata.name ?? "")) throw badRequest("name in URL does not match name in Eviction object");
  await call.admit(eviction, undefined);
  const requested = optionsOf(eviction, call.dryRun);
  const store = call.services.store("", "pods");
  for (let attempt = 1; ; attempt++) {
    const pod = (await store.get(call.namespace, call.name)).object<Pod>();
    const errors = validateDeleteOptions(requested);
    if (errors.length > 0) throw invalid({ group: "meta.k8s.io", kind: "DeleteOptions" }, "", errors);
    const permission = await permit(call, pod, isDryRun(requested));
    const preconditions = { ...preconditionsOf(permission, pod), ...requested.preconditions };
    try {
      await store.delete(strategyContext(call), call.name, { ...requested, preconditions }, async () => {});
      return success();
    } catch (err) {
      if (!isConflict(err)) throw err;
      if (permission.because === "unready" && requested.preconditions?.resourceVersion === undefined) {
        if (permission.budget !== undefined) throw stillProcessed(permission.budget);
        if (attempt < mostTries) continue; // the pod may have become ready
      }
      if (requested.preconditions !== undefined) throw err;
      throw conflict({ group: "", resource: "pods" }, call.name, messageOf(err));
    }
  }
}

function success(): KubeObject {
  const status: Status = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 201 };
  return status;
}

type Permission =
  /** The pod has terminated, is being deleted, or matches no budget. */
  | { readonly because: "uncounted" }
  /** The pod is not ready and therefore not counted as healthy, in its current state. `budget` is undefined for pending pods. */
  | { readonly because: "unready"; readonly budget?: string }
  /** The budget allowed the disruption and was decremented. */
  | { readonly because: "disruption" };

async function permit(call: SubresourceCall, pod: Pod, dryRun: boolean): Promise<Permission> {
  const phase = pod.status?.phase;
  if (phase === "Succeeded" || phase === "Failed" || pod.metadata.deletionTimestamp) return { because: "uncounted" };
  if (phase === "Pending") return { because: "unready" };
  const found = await budgetOf(call, pod);
  if (found === undefined) return { because: "uncounted" };
  const { metadata, status } = found.object<PodDisruptionBudget>();
  const { currentHealthy = 0, desiredHealthy = 0 } = status ?? {};
  if (!isReady(pod) && desiredHealthy > 0 && currentHealthy >= desiredHealthy)
    return { because: "unready", budget: metadata.name ?? "" };
  await takeDisruption(call, found, pod, dryRun);
  return { because: "disruption" };
}

/** Ensures that the examined pod is deleted and, when the decision depends on its state, only in that state. */
function preconditionsOf({ because }: Permission, { metadata }: Pod): DeleteOptions["preconditions"] {
  if (because === "uncounted") return undefined;
  return because === "disruption" ? { uid: metadata.uid ?? "" } : { resourceVersion: metadata.resourceVersion ?? "" };
}

function isReady({ status }: Pod): boolean {
  return (status?.conditions ?? []).some((condition) => condition.type === "Ready" && condition.status === "True");
}

/** Delete options of the eviction with the request's dryRun. @throws 500 when the two contradict each other */
function optionsOf({ deleteOptions = {} }: Eviction, dryRun: boolean): DeleteOptions {
  const given = deleteOptions.dryRun ?? [];
  if (dryRun && given.length > 0 && given.join() !== "All")
    throw plainError(`Non-matching dry-run options in request and content: [All] and [${given.join(" ")}]`);
  return { ...deleteOptions, ...(dryRun && { dryRun: ["All"] }) };
}

async function budgetOf(call: SubresourceCall, pod: Pod): Promise<Entry | undefined> {
  if (Object.keys(pod.metadata.labels ?? {}).length === 0) return undefined;
  const { entries } = await call.services.store("policy", "poddisruptionbudgets").list(call.namespace, {});
  const matching = entries.filter((entry) =>
    readSelector(entry.object<PodDisruptionBudget>().spec?.selector)?.matches(pod.metadata.labels),
  );
  if (matching.length > 1)
    throw plainError("This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.");
  return matching[0];
}

async function takeDisruption(call: SubresourceCall, budget: Entry, pod: Pod, dryRun: boolean): Promise<void> {
  await call.services
    .store("policy", "poddisruptionbudgets")
    .storage.guaranteedUpdate(
      budget.key,
      (entry) => countDisruption(entry!.object<PodDisruptionBudget>(), pod.metadata.name ?? "", call.services.now()),
      { dryRun, signal: call.ctx.signal },
    );
}

/** A copy of the budget with one disruption less. @throws 429 when none is left or the status is outdated; 403 */
export function countDisruption(current: PodDisruptionBudget, podName: string, now: number): PodDisruptionBudget {
  const status = current.status;
  const name = current.metadata.name ?? "";
  if ((status?.observedGeneration ?? 0) < (current.metadata.generation ?? 0)) throw stillProcessed(name);
  const allowed = status?.disruptionsAllowed ?? 0;
  if (allowed < 0) {
    throw forbiddenBudget(name, "pdb disruptions allowed is negative");
  }
  const disrupted = status?.disruptedPods ?? {};
  if (Object.keys(disrupted).length > mostDisruptedPods) {
    throw forbiddenBudget(name, "DisruptedPods map too big - too many evictions not confirmed by PDB controller");
  }
  if (allowed === 0) {
    throw withCause(
      tooManyRequests(violationText, 0),
      `The disruption budget ${name} needs ${status?.desiredHealthy ?? 0} healthy pods and has ${status?.currentHealthy ?? 0} currently`,
    );
  }
  const budget = deepClone(current);
  const next = budget.status!;
  next.disruptionsAllowed = allowed - 1;
  next.disruptedPods = { ...disrupted, [podName]: formatTime(now) };
  // Updates the condition immediately; the disruption controller observes the eviction only later.
  if (next.disruptionsAllowed === 0 && next.conditions) {
    next.conditions = next.conditions.map((condition) =>
      condition.type === "DisruptionAllowed" && condition.status !== "False"
        ? { ...condition, status: "False", reason: "InsufficientPods", lastTransitionTime: formatTime(now) }
        : condition,
    );
  }
  return budget;
}

const violationText = "Cannot evict pod as it would violate the pod's disruption budget.";

function stillProcessed(budget: string): Error {
  const message = `The disruption budget ${budget} is still being processed by the server.`;
  return withCause(tooManyRequests(violationText, retryAfterSeconds), message);
}

function forbiddenBudget(name: string, message: string): Error {
  return forbidden({ group: "policy", resource: "poddisruptionbudget" }, name, message);
}

function withCause<E extends { status: Status }>(err: E, message: string): E {
  err.status.details = {
    ...err.status.details,
    causes: [...(err.status.details?.causes ?? []), { reason: "DisruptionBudget", message }],
  };
  return err;
}

function strategyContext(call: SubresourceCall): StrategyContext {
  return {
    user: call.ctx.user,
    namespace: call.namespace,
    dryRun: call.dryRun,
    now: call.services.now,
    featureEnabled: call.services.featureEnabled,
    warn: (text) => call.ctx.warn(text),
  };
}
