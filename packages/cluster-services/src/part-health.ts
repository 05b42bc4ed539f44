import type { Clock } from "@coxswain/apimachinery/clock/clock";
import { causesOf } from "@coxswain/apimachinery/errors/message";
import type { MetricsRegistry } from "@coxswain/apimachinery/metrics/registry";
import type { Part } from "./part.ts";

/** State of each part, for health checks and metrics. */
export interface PartHealth {
  starting(name: string): void;
  running(name: string, part: Part): void;
  failed(name: string, err: unknown): void;
  /** Not wanted here any longer: the process ends, or another has the lease. */
  ended(name: string): void;
  /** @throws Error while the part starts, after it failed until it has run for `steadyMs`, and when its own check throws */
  check(name: string): Promise<void>;
}

/** A part that was started again is healthy after running for this long. */
const steadyMs = 10_000;

export function newPartHealth({ clock, metrics }: { clock: Clock; metrics: MetricsRegistry }): PartHealth {
  const states = new Map<string, { part?: Part; failure?: string; since: number }>();
  const failures = metrics.counter({
    name: "coxswain_services_part_failures_total",
    help: "How often a part failed as a whole, at its start or later, and was started again.",
    labels: ["part"],
  });
  const running = metrics.gauge({
    name: "coxswain_services_part_running",
    help: "1 for a part that runs in this process, 0 for one that starts, waits after a failure or waits for the lease.",
    labels: ["part"],
  });
  const set = (name: string, state: { part?: Part; failure?: string | undefined }): void => {
    const { part, failure } = state;
    states.set(name, { ...(part && { part }), ...(failure !== undefined && { failure }), since: clock.monotonic() });
    running.labels(name).set(part === undefined ? 0 : 1);
  };
  return {
    starting: (name) => set(name, { failure: states.get(name)?.failure }),
    running: (name, part) => set(name, { part, failure: states.get(name)?.failure }),
    failed(name, err) {
      failures.labels(name).inc();
      set(name, { failure: causesOf(err) });
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
