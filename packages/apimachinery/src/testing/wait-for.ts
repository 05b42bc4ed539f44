/** The real one: tests put another in its place. */
const realNow = performance.now.bind(performance);

/**
 * Asks again and again until the condition gives something truthy, and gives that back.
 * @param options.what names the awaited thing in the failure, e.g. "the deployment to be complete"
 * @throws Error after `timeoutMs` (60 s when absent: it tells that nothing comes, not how busy the machine is), with the last value or the last error of the condition
 */
export async function waitFor<T>(
  condition: () => T | Promise<T>,
  options: { timeoutMs?: number; what?: string; intervalMs?: number } = {},
): Promise<Exclude<T, undefined | null | false | 0 | "">> {
  const { timeoutMs = 60_000, what = "the condition", intervalMs = 5 } = options;
  const deadline = realNow() + timeoutMs;
  let last: unknown;
  for (let pauseMs = intervalMs; ; pauseMs = Math.min(100, pauseMs * 1.3)) {
    try {
      last = await condition();
      if (last) return last as Exclude<T, undefined | null | false | 0 | "">;
    } catch (err) {
      last = err;
    }
    if (realNow() >= deadline) {
      const cause = last instanceof Error ? { cause: last } : {};
      const shown = last instanceof Error ? last.message : JSON.stringify(last);
      throw new Error(`waited ${timeoutMs} ms for ${what}; last: ${shown}`, cause);
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

/** Lets everything that is ready to run do so: promises, immediates. For tests that move a fake clock. */
export async function settle(rounds = 10): Promise<void> {
  for (let i = 0; i < rounds; i++) await new Promise((resolve) => setImmediate(resolve));
}
