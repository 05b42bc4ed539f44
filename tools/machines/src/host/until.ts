import { setTimeout as pause } from "node:timers/promises";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { Failure } from "../failure.ts";

interface UntilOptions {
  readonly timeoutMs: number;
  /** Description of the condition for the error: `the API server to be ready`. */
  readonly what: string;
  /** Command to run when the wait fails. */
  readonly remedy?: string;
  readonly everyMs?: number;
  /** True for an error that waiting cannot resolve. */
  readonly isFinal?: (err: unknown) => boolean;
}

/**
 * Polls until the result is neither undefined nor false; errors are retried unless they are permanent. @throws Failure with the
 * last error after the time limit
 */
export async function until<T>(ask: () => Promise<T | undefined | false>, options: UntilOptions): Promise<T> {
  const { timeoutMs, what, remedy, everyMs = 200, isFinal = () => false } = options;
  const end = performance.now() + timeoutMs;
  let last = "";
  for (;;) {
    try {
      const answer = await ask();
      if (answer !== undefined && answer !== false) return answer;
      last = "";
    } catch (err) {
      if (isFinal(err)) throw err;
      last = `: ${messageOf(err)}`;
    }
    if (performance.now() >= end)
      throw new Failure(`waited ${timeoutMs / 1000}s for ${what}${last}${remedy ? `; ${remedy}` : ""}`);
    await pause(everyMs);
  }
}
