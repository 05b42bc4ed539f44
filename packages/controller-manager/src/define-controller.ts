import {
  type Controller,
  type ControllerOptions,
  newController,
  type Result,
} from "@coxswain/apimachinery/controller/controller";
import { newPeriodic, type Periodic, type PeriodicOptions } from "@coxswain/apimachinery/controller/periodic";
import type { ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { ControllerContext, Runnable } from "./controller-context.ts";

/**
 * Moves one object towards its desired state; never runs concurrently for one key. Level-based: acts on the cached state, not
 * on the event that enqueued the key. A rejection is logged and retried with backoff.
 * @param ctx dependencies and state shared by all reconciliations of the controller
 */
type Reconcile<C extends ControllerContext> = (ctx: C, key: ObjectKey, signal: AbortSignal) => Promise<Result>;

/** A work queue, its event sources and the reconcile function of its keys. `name` is that of the work queue in logs and metrics. */
interface ControllerDefinition<C extends ControllerContext>
  extends Pick<
    ControllerOptions,
    "name" | "sources" | "workers" | "maxRetries" | "limiter" | "batchMs" | "resource" | "objectOf"
  > {
  readonly reconcile: Reconcile<C>;
}

/** Creates a controller with the log, clock and queue metrics of the context. */
export function defineController<C extends ControllerContext>(
  ctx: C,
  { reconcile, ...options }: ControllerDefinition<C>,
): Controller {
  const { log, clock, turns, decisions, queueMetrics: metrics } = ctx;
  const common = { log, clock, turns, decisions, metrics };
  return newController({ ...options, ...common, reconcile: (key, signal) => reconcile(ctx, key, signal) });
}

/** A check that is repeated for all objects. */
interface PeriodicDefinition<C extends ControllerContext>
  extends Pick<PeriodicOptions, "name" | "periodMs" | "synced" | "startsLate"> {
  /** Called periodically. An error is logged and does not end the loop. */
  readonly work: (ctx: C, signal: AbortSignal) => Promise<void>;
}

/** Creates a periodic check with the log and clock of the context. */
export function definePeriodic<C extends ControllerContext>(ctx: C, { work, ...options }: PeriodicDefinition<C>): Periodic {
  const { log, clock } = ctx;
  return newPeriodic({ ...options, work: (signal) => work(ctx, signal), log, clock });
}

/** Runs the parts of a controller concurrently. The first failure ends the wait for all of them. */
export function runTogether(...parts: readonly Runnable[]): Runnable {
  return { run: async (signal) => void (await Promise.all(parts.map((part) => part.run(signal)))) };
}
