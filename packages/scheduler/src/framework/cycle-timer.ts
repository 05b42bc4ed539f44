import type { Status } from "./status.ts";

/**
 * Times calls of plugins. Only one cycle in ten is timed: clocks cost more than some of the filters.
 * Source: framework/runtime metricsRecorder; pluginMetricsSamplePercent
 */
export interface PluginTimer {
  now(): number;
  plugin(name: string, point: string, status: Status | undefined, beginMs: number | undefined): void;
}

/** Times whole points of a cycle, and single plugins when the cycle is a sampled one. */
export interface CycleTimer {
  readonly plugins: PluginTimer | undefined;
  /** @param run may answer at once or later; a promise is timed to its end */
  point<T>(name: string, run: () => T): T;
}

export const untimed: CycleTimer = { plugins: undefined, point: (_, run) => run() };
