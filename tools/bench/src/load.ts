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

/** The smallest value that `share` of all values do not exceed; NaN of none. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}
