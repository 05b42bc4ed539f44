import { causesOf } from "@coxswain/apimachinery/objects/errors/message";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import definitions from "./metrics.json" with { type: "json" };
import type { Part } from "./part.ts";

/** State of each part, for health checks and metrics. */
export interface PartHealth {
  starting(name: string): void;
  running(name: string, part: Part): void;
  failed(name: string, err: unknown): void;
  /** The part is stopped on purpose: the process ends, or another process holds the lease. */
  ended(name: string): void;
  /**
   * @throws Error while the part starts, when its own check throws, and after a failure of the running part until it has run for
   * `steadyMs` again
   */
  check(name: string): Promise<void>;
}

/** A part that failed while it ran is healthy again after running for this long; one that could not start, when it has started. */
const steadyMs = 10_000;

export function newPartHealth({ clock, metrics }: { clock: Clock; metrics: MetricsRegistry }): PartHealth {
  interface State {
    readonly part?: Part;
    readonly failure?: string | undefined;
    /** Whether the failure was one of a part that ran: it may fail again after a while. */
    readonly unsteady?: boolean;
  }
  const states = new Map<string, State & { readonly since: number }>();
  const failures = metrics.counter(definitions.coxswain_services_part_failures_total);
  const running = metrics.gauge(definitions.coxswain_services_part_running);
  const set = (name: string, state: State): void => {
    states.set(name, { ...state, since: clock.monotonic() });
    running.labels(name).set(state.part === undefined ? 0 : 1);
  };
  return {
    starting(name) {
      const { failure, unsteady = false } = states.get(name) ?? {};
      set(name, { failure, unsteady });
    },
    running(name, part) {
      const { failure, unsteady = false } = states.get(name) ?? {};
      set(name, { part, failure: unsteady ? failure : undefined, unsteady });
    },
    failed(name, err) {
      failures.labels(name).inc();
      const { part, unsteady = false } = states.get(name) ?? {};
      set(name, { failure: causesOf(err), unsteady: unsteady || part !== undefined });
    },
    ended(name) {
      states.delete(name);
      running.labels(name).set(0);
    },
    async check(name) {
      const state = states.get(name);
      if (state === undefined) return;
      if (state.part === undefined) throw new Error(state.failure ?? "the part is starting");
      if (state.failure !== undefined && clock.monotonic() - state.since < steadyMs) throw new Error(state.failure);
      await state.part.check?.();
    },
  };
}
