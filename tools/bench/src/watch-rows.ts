import { type Limit, quantities } from "./limits.ts";
import type { Row } from "./rows.ts";
import { watchFanOut, watchPaced } from "./watch-fan-out.ts";

const { cpu, p99, perSecond } = quantities;
const watchers = 500;
/** What a floor for the last row has to do as well. */
export const atPace = { watchers: 100, connections: 10, updatesPerSecond: 100 };

/** One changed pod to many watchers, on few and on many connections. An operation is one event at one watcher. */
export const watchRows: readonly Row[] = [
  fanOutRow(5, 0.25, [{ quantity: perSecond, atLeast: 3 }]),
  fanOutRow(50, 0.3),
  fanOutRow(500, 0.8),
  {
    name: "watch event, 100 updates/s, 100 watchers",
    limits: [{ quantity: p99, atMost: 0.3 }],
    // A server that collects garbage every few seconds has its slowest updates then: a few hundred of them may meet that twice or never.
    leastSeconds: 60,
    run: (stage, seconds) => watchPaced(stage, { ...atPace, seconds }),
  },
];

function fanOutRow(connections: number, share: number, more: readonly Limit[] = []): Row {
  return {
    name: `watch event, ${watchers} watchers, ${connections} connections`,
    limits: [{ quantity: cpu, atMost: share }, ...more],
    run: (stage, seconds) => watchFanOut(stage, { watchers, connections, seconds }),
  };
}
