import { inspect } from "node:util";

/** The real one: tests put another in its place. */
const realNow = performance.now.bind(performance);

export interface WaitOptions {
  /** Ends what hangs; it says that nothing comes, not how long the thing may take on a busy machine. 60 s when absent. */
  readonly timeoutMs?: number;
  /** Names the awaited thing in the failure, e.g. "the deployment to be complete". */
  readonly what?: string;
  readonly intervalMs?: number;
  /** Errors of the condition that mean "not yet"; every other one fails at once. None when absent. */
  readonly retry?: (err: Error) => boolean;
}

/** Keeps what a condition has looked at, for the failure. @returns its argument */
export type Seen = <T>(state: T) => T;

/**
 * Asks again and again until the condition gives something truthy, and gives that back.
 * @param condition may pass what it looks at to its argument: the last of it is shown when time runs out, else the last value
 * @throws what the condition throws, at once, unless `retry` says that it means "not yet"; Error after `timeoutMs`, with the last state
 */
export async function waitFor<T>(
  condition: (seen: Seen) => T | Promise<T>,
  options: WaitOptions = {},
): Promise<Exclude<T, undefined | null | false | 0 | "">> {
  const { timeoutMs = 60_000, what = "the condition", intervalMs = 5, retry = () => false } = options;
  const deadline = realNow() + timeoutMs;
  let last: unknown;
  for (let pauseMs = intervalMs; ; pauseMs = Math.min(100, pauseMs * 1.3)) {
    let shown = false;
    const seen: Seen = (state) => {
      shown = true;
      last = state;
      return state;
    };
    try {
      const value = await condition(seen);
      if (value) return value as Exclude<T, undefined | null | false | 0 | "">;
      if (!shown) last = value;
    } catch (err) {
      if (!(err instanceof Error) || !retry(err)) throw err;
      last = err;
    }
    if (realNow() >= deadline) {
      const cause = last instanceof Error ? { cause: last } : {};
      throw new Error(
        `waited ${timeoutMs} ms for ${what}; last: ${last instanceof Error ? last.message : stateText(last)}`,
        cause,
      );
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

const stateText = (state: unknown): string => {
  const text = typeof state === "string" ? state : inspect(state, { depth: 6, maxArrayLength: 50, maxStringLength: 2_000 });
  return text.length > 8_000 ? `${text.slice(0, 8_000)}…` : text;
};

const hasCode = (err: Error, ...codes: readonly string[]): boolean =>
  [err, err.cause].some((one) => codes.includes(String((one as NodeJS.ErrnoException | undefined)?.code)));

/** A `retry` for a file that another process has not written yet. */
export const isMissingFile = (err: Error): boolean => hasCode(err, "ENOENT");

/** A `retry` for a server that does not listen yet, or ends a connection because it starts or stops. */
export const isNotListening = (err: Error): boolean =>
  hasCode(err, "ENOENT", "ECONNREFUSED", "ECONNRESET", "EPIPE", "UND_ERR_SOCKET", ...endedSessionCodes);

/** Of node's HTTP/2 client, for a request on a session that the server has ended. */
const endedSessionCodes = ["ERR_HTTP2_STREAM_CANCEL", "ERR_HTTP2_GOAWAY_SESSION", "ERR_HTTP2_INVALID_SESSION"];

/** A `retry` for a program that is asked again and again, and says by its exit code that it does not know yet. */
export const hasExitCode = (err: Error): boolean => typeof (err as { code?: unknown }).code === "number";

/** Lets everything that is ready to run do so: promises, immediates. For tests that move a fake clock. */
export async function settle(rounds = 10): Promise<void> {
  for (let i = 0; i < rounds; i++) await new Promise((resolve) => setImmediate(resolve));
}
