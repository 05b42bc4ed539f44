/** What one round of load brought. Times in ms. */
export interface Samples {
  operations: number;
  seconds: number;
  readonly latencies: number[];
  readonly firstBytes: number[];
}

export interface Measured {
  readonly totalMs: number;
  readonly firstByteMs?: number;
}

export const noSamples = (): Samples => ({ operations: 0, seconds: 0, latencies: [], firstBytes: [] });

/**
 * `concurrency` workers, each starting its next operation when its last is answered, until `seconds` are over or
 * `maxOperations` were started.
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

/** Looked at so often whether the next operation is due. */
const paceMs = 1;

/**
 * Starts `perSecond` operations, whether the ones before are answered or not, and waits for all of them.
 * @param mostUnderWay of them at a time; default a second's worth
 * @throws the first error of an operation; Error when more are under way: the pace is more than is borne
 */
export async function openLoop(
  operation: (sequence: number) => Promise<unknown>,
  { perSecond, seconds, mostUnderWay = perSecond }: { perSecond: number; seconds: number; mostUnderWay?: number },
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
  const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, paceMs));
  for (let atSecond = 0; atSecond < seconds && failures.length === 0; ) {
    // What falls due is started however late it is, up to the last.
    atSecond = Math.min((performance.now() - start) / 1000, seconds);
    while (started < atSecond * perSecond) {
      if (underWay >= mostUnderWay) failures.push(new Error(`${perSecond} operations a second are too many`));
      if (failures.length > 0) break;
      void begin();
    }
    await pause();
  }
  while (underWay > 0) await pause();
  if (failures.length > 0) throw failures[0];
  return started;
}

/** The smallest value that `share` of all values do not exceed; NaN of none. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}
