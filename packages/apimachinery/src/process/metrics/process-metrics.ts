import { type ELDHistogram, monitorEventLoopDelay } from "node:perf_hooks";
import { collectDefaultMetrics, Gauge, type Registry } from "prom-client";

type Read = (delays: ELDHistogram) => number;

/** Statistics of the delays since the last collection: part of the metric's name, help, value in nanoseconds. */
const statistics: readonly (readonly [string, string, Read])[] = [
  ["min", "The minimum recorded event loop delay.", ({ min }) => min],
  ["max", "The maximum recorded event loop delay.", ({ max }) => max],
  ["mean", "The mean of the recorded event loop delays.", ({ mean }) => mean],
  ["stddev", "The standard deviation of the recorded event loop delays.", ({ stddev }) => stddev],
  ...[50, 90, 99].map(
    (percent) =>
      [
        `p${percent}`,
        `The ${percent}th percentile of the recorded event loop delays.`,
        (delays: ELDHistogram) => delays.percentile(percent),
      ] as const,
  ),
];

/** Interval that disables prom-client's own measurement, which has no switch: the longest one of a timer. */
const neverMs = 2 ** 31 - 1;

/** Registers prom-client's metrics of this process: memory, CPU, garbage collection, event loop. */
export function collectProcessMetrics(registry: Registry): void {
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: neverMs });
  replaceEventLoopDelay(registry);
}

/**
 * Replaces prom-client's metrics of the event loop's delay, under the same names. Those are measured by a timer of 10 ms, whose
 * wake-ups took more CPU time than all else that an idle scheduler does (0.3 s a minute); here each iteration of the loop is one
 * sample, without the time that it waits for something to do.
 */
function replaceEventLoopDelay(registry: Registry): void {
  const delays = monitorEventLoopDelay({ samplePerIteration: true });
  delays.enable();
  // Ends the first iteration now, which would otherwise count the time until there is something to do.
  setImmediate(() => {});
  const registers = [registry];
  const name = (part: string): string => `nodejs_eventloop_lag${part}_seconds`;
  const replace = (part: string, help: string, collect?: () => void): Gauge => {
    registry.removeSingleMetric(name(part));
    return new Gauge({ name: name(part), help, registers, ...(collect !== undefined && { collect }) });
  };
  const gauges: [Gauge, Read][] = [];
  // Registered, and hence collected, first: it sets the others.
  const current = replace("", "Lag of event loop in seconds.", () => {
    const begin = performance.now();
    setImmediate(() => current.set((performance.now() - begin) / 1000));
    for (const [gauge, read] of gauges) gauge.set(delays.count === 0 ? 0 : read(delays) / 1e9);
    delays.reset();
  });
  for (const [part, help, read] of statistics) gauges.push([replace(`_${part}`, help), read]);
}
