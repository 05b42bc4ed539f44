import type { Status } from "./status.ts";

/**
 * Times calls of plugins. Only one cycle in ten is timed: clocks cost more than some of the filters.
 * Source: framework/runtime metricsRecorder; pluginMetricsSamplePercent
 */
export interface PluginTimer {
  now(): number;
  plugin(name: string, point: string, status: Status | undefined, beginMs: number | undefined): void;
}
