/**
 * CPU time of this thread for the work, in ms. Wall-clock time would depend on the load of the machine, and
 * `process.cpuUsage()` includes V8's compiler and garbage collector threads.
 */
export function cpuMsOf(work: () => void): number {
  const before = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

/**
 * The minimum of up to three measurements. Noise from other processes and garbage collection is occasional and only adds.
 * @param enough stops as soon as a measurement is below this value
 */
export async function leastOf(enough: number, measure: (round: number) => Promise<number>): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 3 && least >= enough; round++) least = Math.min(least, await measure(round));
  return least;
}

/**
 * The longest event-loop turn during the work, in ms of this thread's CPU time; the minimum of up to three rounds.
 * @param prepare makes what a round needs, before its measurement
 */
export function longestTurnOf<T = undefined>(
  enoughMs: number,
  work: (round: number, prepared: T) => Promise<void>,
  prepare?: (round: number) => T,
): Promise<number> {
  return leastOf(enoughMs, async (round) => {
    const prepared = prepare?.(round) as T;
    const turns = measureTurns();
    try {
      await work(round, prepared);
      return turns.stop();
    } finally {
      turns.stop();
    }
  });
}

function measureTurns(): { stop(): number } {
  let longest = 0;
  let running = true;
  let before = process.threadCpuUsage();
  const turn = (): void => {
    const now = process.threadCpuUsage();
    longest = Math.max(longest, now.user + now.system - before.user - before.system);
    before = now;
    // Unreferenced, so that the loop waits for events instead of spinning, which would take CPU time from the measured work.
    if (running) setImmediate(turn).unref();
  };
  turn();
  return {
    stop() {
      running = false;
      turn();
      return longest / 1000;
    },
  };
}
