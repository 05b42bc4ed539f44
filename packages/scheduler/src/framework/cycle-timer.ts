import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import type { Status } from "./status.ts";

/**
 * Measures calls of single plugins. Only one cycle in ten is sampled: reading the clock costs more than some filters.
 * Source: framework/runtime metricsRecorder; pluginMetricsSamplePercent
 */
export interface PluginTimer {
  now(): number;
  /** Observes a call that began at `beginMs`. @returns the time of its end */
  plugin(name: string, point: string, status: Status | undefined, beginMs: number): number;
}

/** Ends the measurement of an extension point. @param outcome what it returned; nothing when it failed */
export type EndOfPoint = (...outcome: [] | [outcome: unknown]) => void;

/** Measures whole extension points, and single plugins when the cycle is sampled. */
export interface CycleTimer {
  readonly plugins: PluginTimer | undefined;
  begin(name: string): EndOfPoint;
  /** @param run may return a promise, which is measured until it settles */
  point<T>(name: string, run: () => T): T;
}

/** As `point`, for work in steps; the time of other work between them counts. */
export function* timedSteps<T>(timer: CycleTimer, name: string, steps: Steps<T>): Steps<T> {
  const end = timer.begin(name);
  let outcome: [] | [T] = [];
  try {
    const result = yield* steps;
    outcome = [result];
    return result;
  } finally {
    end(...outcome);
  }
}

export const untimed: CycleTimer = { plugins: undefined, begin: () => () => {}, point: (_, run) => run() };
