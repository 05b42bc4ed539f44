/**
 * How long this thread computes at something, in ms. By the clock a test would also tell what else the machine has to do, and by
 * `process.cpuUsage()` what V8's other threads compile and collect.
 */
export function cpuMsOf(work: () => void): number {
  const before = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

/**
 * The least of up to three measurements of one thing. What a shared machine and the collector of garbage put into them comes now and
 * then, and only adds; what takes long by itself does so each time.
 * @param enough below it one is enough
 */
export async function leastOf(enough: number, measure: (round: number) => Promise<number>): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 3 && least >= enough; round++) least = Math.min(least, await measure(round));
  return least;
}

/** The longest turn of the event loop while something is done, in ms of this thread's CPU; least of rounds, which each do it anew. */
export function longestTurnOf(enoughMs: number, work: (round: number) => Promise<void>): Promise<number> {
  return leastOf(enoughMs, async (round) => {
    const turns = measureTurns();
    try {
      await work(round);
      return turns.stop();
    } finally {
      turns.stop(); // or a test that fails never ends
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
    if (running) setImmediate(turn);
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
