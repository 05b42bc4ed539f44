/**
 * Asks again and again until the condition gives something truthy, and gives that back.
 * @param options.what names the awaited thing in the failure, e.g. "the deployment to be complete"
 * @throws Error after `timeoutMs` (10 s when absent), with the last value or the last error of the condition
 */
export async function waitFor<T>(
  condition: () => T | Promise<T>,
  options: { timeoutMs?: number; what?: string; intervalMs?: number } = {},
): Promise<Exclude<T, undefined | null | false | 0 | "">> {
  const { timeoutMs = 10_000, what = "the condition", intervalMs = 5 } = options;
  const deadline = performance.now() + timeoutMs;
  let last: unknown;
  for (let pauseMs = intervalMs; ; pauseMs = Math.min(100, pauseMs * 1.3)) {
    try {
      last = await condition();
      if (last) return last as Exclude<T, undefined | null | false | 0 | "">;
    } catch (err) {
      last = err;
    }
    if (performance.now() >= deadline) {
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
