import { ConfigError } from "@coxswain/apimachinery/flags/run-main";
import { newBackoff } from "@coxswain/apimachinery/informers/backoff";
import { scopedInformers } from "@coxswain/apimachinery/informers/scoped-informers";
import { causesOf } from "@coxswain/apimachinery/objects/errors/message";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import type { ControllerContext, Runnable } from "./controller-context.ts";
import definitions from "./metrics.json" with { type: "json" };

/** Failures of controllers, for health checks and metrics. */
export interface ControllerHealth {
  failed(controller: string, err: unknown): void;
  started(controller: string): void;
  /** @throws Error after a controller failed, until it has run again for `steadyMs` */
  check(controller: string): void;
}

/** A restarted controller is healthy after running for this long. */
const steadyMs = 10_000;

/** Backoff between a failure and the restart. */
const restartBackoff = { initialMs: 1000, maxMs: 60_000, resetAfterMs: 180_000, factor: 2, jitter: 0.2 };

export function newControllerHealth({ clock, metrics }: { clock: Clock; metrics: MetricsRegistry }): ControllerHealth {
  const failures = new Map<string, { readonly reason: string; restartedAt: number }>();
  const total = metrics.counter(definitions.coxswain_controller_failures_total);
  return {
    failed(controller, err) {
      failures.set(controller, { reason: causesOf(err), restartedAt: Number.POSITIVE_INFINITY });
      total.labels(controller).inc();
    },
    started(controller) {
      const failure = failures.get(controller);
      if (failure !== undefined) failure.restartedAt = clock.monotonic();
    },
    check(controller) {
      const failure = failures.get(controller);
      if (failure === undefined) return;
      if (clock.monotonic() - failure.restartedAt < steadyMs) throw new Error(failure.reason);
      failures.delete(controller);
    },
  };
}

interface SupervisedOptions {
  readonly name: string;
  readonly ctx: ControllerContext;
  readonly make: (ctx: ControllerContext) => Runnable | undefined;
  readonly health: ControllerHealth;
  readonly log: Logger;
  readonly clock: Clock;
}

/**
 * Isolates the failures of one controller: when creating or running it throws, the failure is logged, counted and
 * reported to health, and a new instance starts after 1 s to 60 s. Informer handlers of the failed instance are removed.
 * @returns undefined when the configuration disables the controller
 * @throws ConfigError of `make`; an invalid configuration is not retried
 */
export function supervise(options: SupervisedOptions): Runnable | undefined {
  const { name, health, log, clock } = options;
  const backoff = newBackoff({ ...restartBackoff, clock });
  const failed = (err: unknown, waitMs: number): void => {
    health.failed(name, err);
    log.error("controller failed; it will be started again", err, { controller: name, afterMs: Math.round(waitMs) });
  };
  let first: Attempt | undefined;
  let firstWaitMs = 0;
  try {
    first = newAttempt(options);
    if (first.runnable === undefined) return undefined;
  } catch (err) {
    if (err instanceof ConfigError) throw err;
    firstWaitMs = backoff.next();
    failed(err, firstWaitMs);
  }
  return {
    async run(signal) {
      let attempt = first;
      let waitMs = firstWaitMs;
      for (;;) {
        if (waitMs > 0) await clock.sleep(waitMs, signal).catch(() => {});
        if (signal.aborted) return attempt?.end();
        try {
          attempt ??= newAttempt(options);
          health.started(name);
          await attempt.run(signal);
          return;
        } catch (err) {
          if (signal.aborted) return;
          waitMs = backoff.next();
          failed(err, waitMs);
        } finally {
          attempt?.end();
          attempt = undefined;
        }
      }
    },
  };
}

/** One instance of a controller. */
interface Attempt {
  readonly runnable: Runnable | undefined;
  run(signal: AbortSignal): Promise<void>;
  /** Stops all parts of the instance that still run. */
  end(): void;
}

function newAttempt({ make, ctx }: SupervisedOptions): Attempt {
  const ending = new AbortController();
  const scope = scopedInformers(ctx.informers);
  const end = (): void => {
    ending.abort(new Error("the controller has ended"));
    scope.removeHandlers();
  };
  try {
    const runnable = make({ ...ctx, informers: scope.informers });
    return {
      runnable,
      async run(signal) {
        // Not AbortSignal.any: its signals are more expensive, and each request adds a listener and removes it.
        const onAbort = (): void => ending.abort(signal.reason);
        signal.addEventListener("abort", onAbort, { once: true });
        try {
          await runnable?.run(ending.signal);
        } finally {
          signal.removeEventListener("abort", onAbort);
        }
      },
      end,
    };
  } catch (err) {
    end();
    throw err;
  }
}
