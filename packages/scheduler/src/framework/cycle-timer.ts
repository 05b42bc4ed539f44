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

/** Measures whole extension points, and single plugins when the cycle is sampled. */
export interface CycleTimer {
  readonly plugins: PluginTimer | undefined;
  /** @param run may return a promise, which is measured until it settles */
  point<T>(name: string, run: () => T): T;
}

/** As `point`, for work in steps; the time of other work between them counts. */
export function* timedSteps<T>({ point }: CycleTimer, name: string, steps: Steps<T>): Steps<T> {
  const ended = Promise.withResolvers<T>();
  point(name, () => ended.promise).catch(() => {}); // a failure is the caller's, who gets it from the steps
  try {
    const result = yield* steps;
    ended.resolve(result);
    return result;
  } finally {
    ended.reject(); // without effect after a result
  }
}

export const untimed: CycleTimer = { plugins: undefined, point: (_, run) => run() };
