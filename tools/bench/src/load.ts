/** Measurements of one round of load. Times in ms. */
export interface Samples {
  operations: number;
  seconds: number;
  readonly latencies: number[];
  readonly firstBytes: number[];
}

/** Measurements of one row and one server. */
export interface Result extends Samples {
  cpuSeconds: number;
  etcdCpuSeconds: number;
  /** CPU time of this process, which shares the machine with the servers. */
  clientCpuSeconds: number;
  residentMb: number;
}

export interface Measured {
  readonly totalMs: number;
  readonly firstByteMs?: number;
}

export const noSamples = (): Samples => ({ operations: 0, seconds: 0, latencies: [], firstBytes: [] });

/**
 * Closed-loop load: `concurrency` workers, each starting an operation when its previous one completes, until `seconds` have
 * passed or `maxOperations` were started.
 * @throws the first error of an operation, after all workers have stopped
 */
export async function closedLoop(
  operation: (sequence: number) => Promise<Measured>,
  { concurrency, seconds, maxOperations = 1_000_000 }: { concurrency: number; seconds: number; maxOperations?: number },
): Promise<Samples> {
  const samples = noSamples();
  const start = performance.now();
  let started = 0;
  let failed = false;
  const worker = async (): Promise<void> => {
    while (!failed && started < maxOperations && performance.now() - start < seconds * 1000) {
      try {
        const { totalMs, firstByteMs } = await operation(started++);
        samples.latencies.push(totalMs);
        if (firstByteMs !== undefined) samples.firstBytes.push(firstByteMs);
      } catch (err) {
        failed = true;
        throw err;
      }
    }
  };
  const ended = await Promise.allSettled(Array.from({ length: concurrency }, worker));
  for (const result of ended) if (result.status === "rejected") throw result.reason;
  samples.operations = samples.latencies.length;
  samples.seconds = (performance.now() - start) / 1000;
  return samples;
}

/** Shortest and longest time between two looks for due operations and failures. */
const paceMs = { least: 1, most: 100 };

interface OpenLoad {
  readonly perSecond: number;
  readonly seconds: number;
  readonly mostUnderWay?: number;
  readonly atOnce?: number;
}

/**
 * Open-loop load: starts `perSecond` operations regardless of completion, and waits for all of them.
 * @param mostUnderWay limit of concurrent operations; default one second's worth
 * @param atOnce operations that are started together, at the same rate
 * @throws the first error of an operation; Error when the limit is exceeded, because the server cannot sustain the rate
 */
export async function openLoop(
  operation: (sequence: number) => Promise<unknown>,
  { perSecond, seconds, mostUnderWay = perSecond, atOnce = 1 }: OpenLoad,
): Promise<number> {
  const start = performance.now();
  let started = 0;
  let underWay = 0;
  const failures: unknown[] = [];
  const begin = async (): Promise<void> => {
    underWay++;
    try {
      await operation(started++);
    } catch (err) {
      failures.push(err);
    } finally {
      underWay--;
    }
  };
  const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
  for (let atSecond = 0; atSecond < seconds && failures.length === 0; ) {
    // Overdue operations are started too, so that the total is exact.
    atSecond = Math.min((performance.now() - start) / 1000, seconds);
    const due = atSecond < seconds ? Math.floor((atSecond * perSecond) / atOnce) * atOnce : seconds * perSecond;
    while (started < due) {
      if (underWay >= mostUnderWay) failures.push(new Error(`${perSecond} operations a second are too many`));
      if (failures.length > 0) break;
      void begin();
    }
    const dueInMs = start + ((started + atOnce) / perSecond) * 1000 - performance.now();
    await pause(Math.min(Math.max(dueInMs, paceMs.least), paceMs.most));
  }
  while (underWay > 0) await pause(paceMs.least);
  if (failures.length > 0) throw failures[0];
  return started;
}

/** The smallest value not exceeded by a `share` of the values; NaN for an empty list. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}
