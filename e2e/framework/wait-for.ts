import { AsyncLocalStorage } from "node:async_hooks";
import { type Seen, waitFor as waitForCondition } from "@coxswain/apimachinery/testing/wait-for";

const looking = new AsyncLocalStorage<Seen>();

/** Keeps what a condition has got from the cluster, for the failure of the `waitFor` that asks; nothing outside of one. @returns its argument */
export const lookedAt = <T>(state: T): T => {
  looking.getStore()?.(state);
  return state;
};

export interface WaitOptions {
  /** Ends what hangs; it says nothing of how long the thing may take, which depends on the machine. 120 s when absent. */
  readonly timeoutMs?: number;
  /** Errors that mean "not yet"; every other one fails at once. None when absent. */
  readonly retry?: (err: Error) => boolean;
}

/**
 * Asks until the answer is neither undefined nor false; for things that happen in other processes, where no fake clock
 * reaches. The failure shows the last that kubectl or the API server answered.
 */
export function waitFor<T>(
  what: string,
  ask: () => Promise<T | undefined | false>,
  { timeoutMs = 120_000, retry }: WaitOptions = {},
): Promise<T> {
  // In an array, since an answer may be an empty text or zero.
  const condition = async (seen: Seen): Promise<[T] | undefined> => {
    const answer = await looking.run(seen, ask);
    return answer === undefined || answer === false ? undefined : [answer];
  };
  return waitForCondition(condition, { what, timeoutMs, intervalMs: 100, ...(retry && { retry }) }).then(([answer]) => answer);
}
