import { isConflict } from "@coxswain/apimachinery/errors/predicates";
import {
  badRequest,
  conflict,
  forbidden,
  internalError,
  invalid,
  plainError,
  tooManyRequests,
} from "@coxswain/apimachinery/errors/status-error";
import { deepClone } from "@coxswain/apimachinery/meta/deep-equal";
import { formatTime } from "@coxswain/apimachinery/meta/time";
import type { DeleteOptions, KubeObject, Status } from "@coxswain/apimachinery/meta/types";
import type { Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { Eviction, PodDisruptionBudget } from "@coxswain/apimachinery/schema/kinds/policy/v1";
import { LabelSelector } from "@coxswain/apimachinery/selectors/label-selector";
import type { Entry } from "../../../storage/storage.ts";
import { validateDeleteOptions } from "../../generic/delete-options.ts";
import type { StrategyContext } from "../../generic/strategy.ts";
import type { SubresourceCall } from "../../generic/subresource.ts";

/** More deletions than this in flight means that nobody keeps the status up to date. */
const mostDisruptedPods = 2000;
const retryAfterSeconds = 10;

/**
 * Deletes a pod if its disruption budget allows one more disruption; 429 otherwise.
 * Source: pkg/registry/core/pod/storage/eviction.go
 */
export async function createEviction(call: SubresourceCall): Promise<KubeObject> {
  const eviction = call.body as Eviction | undefined;
  if (!eviction) throw badRequest("not a Eviction object");
  if (call.name !== (eviction.metadata.name ?? "")) throw badRequest("name in URL does not match name in Eviction object");
  await call.admit(eviction, undefined);
  const options = optionsOf(eviction, call.dryRun);
  const pod = (await call.services.store("", "pods").get(call.namespace, call.name)).object() as Pod;
  const errors = validateDeleteOptions(options);
  if (errors.length > 0) throw invalid({ group: "meta.k8s.io", kind: "DeleteOptions" }, "", errors);
  if (!hasNoHealthToLose(pod)) {
    const budget = await budgetOf(call, pod);
    if (budget !== undefined) {
      await takeDisruption(call, budget, pod);
      // The state that was counted is the state that goes.
      if (!options.preconditions?.uid) options.preconditions = { ...options.preconditions, uid: pod.metadata.uid ?? "" };
    }
  }
  const store = call.services.store("", "pods");
  try {
    await store.delete(strategyContext(call), call.name, options, async () => {});
  } catch (err) {
    if (isConflict(err) && !eviction.deleteOptions?.preconditions)
      throw conflict({ group: "", resource: "pods" }, call.name, (err as Error).message);
    throw err;
  }
  return {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Success",
    code: 201,
  } satisfies Status as unknown as KubeObject;
}

/** Those of the eviction, where nothing else is asked for by the request. @throws 500 when the two do not agree */
function optionsOf({ deleteOptions = {} }: Eviction, dryRun: boolean): DeleteOptions {
  const given = deleteOptions.dryRun ?? [];
  if (dryRun && given.length > 0 && given.join() !== "All")
    throw plainError(`Non-matching dry-run options in request and content: [All] and [${given.join(" ")}]`);
  return { ...deleteOptions, ...(dryRun && { dryRun: ["All"] }) };
}

/** Pods that are over, not yet running or on their way out count for no budget. */
function hasNoHealthToLose(pod: Pod): boolean {
  const phase = pod.status?.phase;
  return phase === "Succeeded" || phase === "Failed" || phase === "Pending" || Boolean(pod.metadata.deletionTimestamp);
}

async function budgetOf(call: SubresourceCall, pod: Pod): Promise<Entry | undefined> {
  if (Object.keys(pod.metadata.labels ?? {}).length === 0) return undefined;
  const { entries } = await call.services.store("policy", "poddisruptionbudgets").list(call.namespace, {});
  const matching = entries.filter((entry) => {
    const { spec } = entry.object() as PodDisruptionBudget;
    return spec?.selector !== undefined && LabelSelector.fromObject(spec.selector).matches(pod.metadata.labels);
  });
  if (matching.length > 1)
    throw internalError(
      new Error("This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."),
    );
  return matching[0];
}

async function takeDisruption(call: SubresourceCall, budget: Entry, pod: Pod): Promise<void> {
  await call.services
    .store("policy", "poddisruptionbudgets")
    .storage.guaranteedUpdate(
      budget.key,
      (entry) => countDisruption((entry as Entry).object() as PodDisruptionBudget, pod.metadata.name ?? "", call.services.now()),
      { dryRun: call.dryRun, signal: call.ctx.signal },
    );
}

/** The budget with one disruption less. @throws 429 when there is none left, or the status is out of date. */
export function countDisruption(current: PodDisruptionBudget, podName: string, now: number): PodDisruptionBudget {
  const status = current.status;
  const name = current.metadata.name ?? "";
  if ((status?.observedGeneration ?? 0) < (current.metadata.generation ?? 0)) {
    throw withCause(
      tooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", retryAfterSeconds),
      `The disruption budget ${name} is still being processed by the server.`,
    );
  }
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
      tooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0),
      `The disruption budget ${name} needs ${status?.desiredHealthy ?? 0} healthy pods and has ${status?.currentHealthy ?? 0} currently`,
    );
  }
  const budget = deepClone(current);
  const next = budget.status as NonNullable<PodDisruptionBudget["status"]>;
  next.disruptionsAllowed = allowed - 1;
  next.disruptedPods = { ...disrupted, [podName]: formatTime(now) };
  // The controller has not seen this deletion; say so in the condition at once.
  if (next.disruptionsAllowed === 0 && next.conditions) {
    next.conditions = next.conditions.map((condition) =>
      condition.type === "DisruptionAllowed" && condition.status !== "False"
        ? { ...condition, status: "False", reason: "InsufficientPods", lastTransitionTime: formatTime(now) }
        : condition,
    );
  }
  return budget;
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
    now: call.services.now(),
    featureEnabled: call.services.featureEnabled,
    warn: (text) => call.ctx.warn(text),
  };
}
