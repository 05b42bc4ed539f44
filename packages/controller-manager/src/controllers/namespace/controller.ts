import { discoverPreferredResources } from "@coxswain/apimachinery/client/discovery";
import { done, type Result } from "@coxswain/apimachinery/controller/controller";
import { enqueueBy } from "@coxswain/apimachinery/controller/sources";
import { DecidedError } from "@coxswain/apimachinery/decisions/outcome-of-error";
import { isConflict, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { deepEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import { parseTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Namespace } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { namespaces } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { exponentialBackoff } from "@coxswain/apimachinery/workqueue/rate-limiters";
import type { ControllerContext, Runnable } from "../../controller-context.ts";
import { defineController, definePeriodic, runTogether } from "../../define-controller.ts";
import { deletionConditions } from "./conditions.ts";
import { obstacles } from "./obstacles.ts";
import { type DeletionOutcome, deleteContents } from "./writes.ts";

/**
 * namespace-controller: deletes the contents of a terminating namespace, reports obstacles as conditions, and finalizes it.
 * Watches Namespaces (own key, with a deletionTimestamp); deletes all objects in it, writes namespaces/status and
 * namespaces/finalize.
 * Source: pkg/controller/namespace/
 */
export function newNamespaceController(ctx: ControllerContext): Runnable {
  const informer = ctx.informers.for<Namespace>(namespaces);
  const controller = defineController(ctx, {
    name: "namespace",
    resource: namespaces,
    sources: [
      enqueueBy(informer, (queue) => {
        const enqueueDelayed = (namespace: Namespace): void => {
          if (!needsFinalization(namespace)) return;
          // All API servers have to observe the deletion first, so that no objects are created afterwards.
          queue.enqueueAfter(namespace.metadata.name ?? "", observationDelayMs);
        };
        return { added: enqueueDelayed, updated: (_old: Namespace, now: Namespace) => enqueueDelayed(now) };
      }),
    ],
    reconcile,
    workers: ctx.config.concurrency.namespace,
    limiter: exponentialBackoff(5, 60_000),
  });
  // Content that blocked the namespace may have been deleted without an event for this controller.
  const resync = definePeriodic(ctx, {
    name: "namespace",
    periodMs: ctx.config.namespaceSyncPeriodMs,
    synced: [informer],
    async work() {
      for (const namespace of informer.lister.list()) {
        if (needsFinalization(namespace)) controller.enqueueAfter(namespace.metadata.name ?? "", observationDelayMs);
      }
    },
  });
  return runTogether(controller, resync);
}

function needsFinalization({ metadata, spec }: Namespace): boolean {
  return Boolean(metadata.deletionTimestamp) && (spec?.finalizers ?? []).length > 0;
}

/** Source: namespace_controller.go namespaceDeletionGracePeriod */
const observationDelayMs = 5000;
const finalizer = "kubernetes";

async function reconcile(ctx: ControllerContext, name: ObjectKey, signal: AbortSignal): Promise<Result> {
  const { client, log, clock } = ctx;
  let namespace: Namespace;
  try {
    namespace = await client.get<Namespace>(namespaces, { name }, { signal });
  } catch (err) {
    if (isNotFound(err)) return done;
    throw err;
  }
  if (!namespace.metadata.deletionTimestamp || !hasFinalizer(namespace)) return done;
  if (namespace.status?.phase !== "Terminating") {
    const status = { ...namespace.status, phase: "Terminating" };
    namespace = await client.update<Namespace>(namespaces, { ...namespace, status }, { subresource: "status", signal });
  }
  const terminating = { name, forMs: clock.now() - (parseTime(namespace.metadata.deletionTimestamp ?? "") ?? clock.now()) };
  const outcome = await deleteContents(client, await discoverPreferredResources(client, { signal }), terminating, signal);
  namespace = await writeConditions(ctx, namespace, outcome, signal);
  const [failure] = [...outcome.discoveryFailures.map(({ error }) => error), ...outcome.failures];
  if (failure !== undefined) {
    throw new DecidedError(`cannot delete all content of namespace ${name}`, obstacles(outcome), { cause: failure });
  }
  if (outcome.estimateSeconds > 0) {
    const requeueAfterMs = Math.floor(outcome.estimateSeconds / 2 + 1) * 1000;
    log.v(4)?.info("Content remaining in namespace", { namespace: name, waitMs: requeueAfterMs });
    return { requeueAfterMs, decision: obstacles(outcome) };
  }
  log.v(4)?.info("finalizing namespace", { namespace: name, at: clock.now() });
  await finalize(ctx, namespace, signal);
  return done;
}

function hasFinalizer({ spec }: Namespace): boolean {
  return spec?.finalizers?.includes(finalizer) === true;
}

async function writeConditions(
  ctx: ControllerContext,
  namespace: Namespace,
  outcome: DeletionOutcome,
  signal: AbortSignal,
): Promise<Namespace> {
  const conditions = deletionConditions(namespace.status?.conditions ?? [], outcome, ctx.clock.now());
  if (deepEqual(conditions, namespace.status?.conditions ?? [])) return namespace;
  try {
    const status = { ...namespace.status, conditions };
    return await ctx.client.update<Namespace>(namespaces, { ...namespace, status }, { subresource: "status", signal });
  } catch (err) {
    if (isConflict(err)) return ctx.client.get<Namespace>(namespaces, { name: namespace.metadata.name ?? "" }, { signal });
    throw err;
  }
}

async function finalize(ctx: ControllerContext, namespace: Namespace, signal: AbortSignal): Promise<void> {
  const finalizers = (namespace.spec?.finalizers ?? []).filter((name) => name !== finalizer);
  try {
    const changed = { ...namespace, spec: { ...namespace.spec, finalizers } };
    await ctx.client.update<Namespace>(namespaces, changed, { subresource: "finalize", signal });
  } catch (err) {
    if (!isNotFound(err)) throw err;
  }
}
