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
 * The longest turn of the event loop while something is done, in ms of this thread's CPU: the least of up to three rounds. Collections
 * of garbage, and what a machine that is shared puts into a turn, come now and then; a turn that is long by itself is so each time.
 * @param enoughMs below it one round is enough
 */
export async function longestTurnOf(enoughMs: number, work: (round: number) => Promise<void>): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 3 && least >= enoughMs; round++) {
    const turns = measureTurns();
    await work(round);
    least = Math.min(least, turns.stop());
  }
  return least;
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
