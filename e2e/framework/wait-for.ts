import { AsyncLocalStorage } from "node:async_hooks";
import { type Seen, waitFor as waitForCondition } from "@coxswain/apimachinery/testing/wait-for";

const looking = new AsyncLocalStorage<Seen>();

/**
 * Records a state that a condition has read from the cluster, for the failure message of the enclosing `waitFor`; no-op
 * outside of one.
 * @returns its argument
 */
export const lookedAt = <T>(state: T): T => {
  looking.getStore()?.(state);
  return state;
};

export interface WaitOptions {
  /** Time limit for hanging conditions, not an expected duration; default 120 s. */
  readonly timeoutMs?: number;
  /** Errors that mean "not yet"; all others fail immediately. Default: none. */
  readonly retry?: (err: Error) => boolean;
}

/**
 * Polls until the result is neither undefined nor false; for events in other processes, which cannot use a fake clock. The
 * failure message contains the last response of kubectl or the API server.
 */
export function waitFor<T>(
  what: string,
  ask: () => Promise<T | undefined | false>,
  { timeoutMs = 120_000, retry }: WaitOptions = {},
): Promise<T> {
  // Wrapped in an array, because a valid result may be falsy ("" or 0).
  const condition = async (seen: Seen): Promise<[T] | undefined> => {
    const answer = await looking.run(seen, ask);
    return answer === undefined || answer === false ? undefined : [answer];
  };
  return waitForCondition(condition, { what, timeoutMs, intervalMs: 100, ...(retry && { retry }) }).then(([answer]) => answer);
}
