import { setTimeout as delay } from "node:timers/promises";

/**
 * Asks until the answer is neither undefined nor false; for things that happen in other processes, where no fake clock
 * reaches. An error counts as "not yet" and is named when time runs out.
 * @param timeoutMs ends what hangs; it says nothing of how long the thing may take, which depends on the machine
 */
export async function waitFor<T>(what: string, ask: () => Promise<T | undefined | false>, timeoutMs = 120_000): Promise<T> {
  const end = Date.now() + timeoutMs;
  let last: unknown;
  for (;;) {
    try {
      const answer = await ask();
      if (answer !== undefined && answer !== false) return answer;
      last = undefined;
    } catch (err) {
      last = err;
    }
    if (Date.now() > end) throw new Error(`${what}: not within ${timeoutMs} ms`, { cause: last });
    await delay(150);
  }
}
