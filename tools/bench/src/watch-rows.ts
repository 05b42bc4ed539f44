import { type Limit, quantities } from "./limits.ts";
import type { Row } from "./row.ts";
import { watchFanOut, watchPaced } from "./watch-fan-out.ts";

const { cpu, p99, perSecond } = quantities;
const watchers = 500;
/** A rate that both servers sustain on two processors; also used by `bench floor`. */
export const atPace = { watchers: 100, connections: 10, updatesPerSecond: 100 };

/** Updates of one pod with many watchers, on few and on many connections. An operation is one event at one watcher. */
export const watchRows: readonly Row[] = [
  fanOutRow(5, 0.25, [{ quantity: perSecond, atLeast: 3 }]),
  fanOutRow(50, 0.3),
  fanOutRow(500, 0.8),
  ...[5, 50, 500].map((connections) => pacedRow({ ...atPace, watchers, connections }, 24)),
  // At least 60 s: garbage collections are seconds apart and cause the slowest updates; a short run may contain none.
  pacedRow(atPace, 60),
];

function fanOutRow(connections: number, share: number, more: readonly Limit[] = []): Row {
  return {
    name: `watch event, ${watchers} watchers, ${connections} connections`,
    limits: [{ quantity: cpu, atMost: share }, ...more],
    run: (stage, seconds) => watchFanOut(stage, { watchers, connections, seconds }),
  };
}

function pacedRow(pace: typeof atPace, leastSeconds: number): Row {
  const { watchers, connections, updatesPerSecond } = pace;
  return {
    name: `watch event, ${updatesPerSecond} updates/s, ${watchers} watchers, ${connections} connections`,
    limits: [{ quantity: p99, atMost: 0.3 }],
    leastSeconds,
    run: (stage, seconds) => watchPaced(stage, { ...pace, seconds }),
  };
}
