import { inspect } from "node:util";

/** The original function: tests may mock `performance.now`. */
const realNow = performance.now.bind(performance);

interface WaitOptions {
  /** Detects hangs only; not a limit for slow operations on a loaded machine. Default 60 s. */
  readonly timeoutMs?: number;
  /** Describes the condition in the error, e.g. "the deployment to be complete". */
  readonly what?: string;
  readonly intervalMs?: number;
  /** True for errors of the condition that mean "not yet"; other errors fail immediately. Default: none. */
  readonly retry?: (err: Error) => boolean;
}

/** Records the state that a condition checks, for the error text. @returns its argument */
export type Seen = <T>(state: T) => T;

/**
 * Polls the condition until it returns a truthy value, and returns that.
 * @param condition may pass the checked state to its argument; the timeout error shows the last one, else the last value
 * @throws errors of the condition, unless `retry` accepts them; Error after `timeoutMs`, with the last state
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

/** `retry` for a file that another process has not written yet. */
export const isMissingFile = (err: Error): boolean => hasCode(err, "ENOENT");

/** `retry` for a server that does not listen yet, or closes connections while it starts or stops. */
export const isNotListening = (err: Error): boolean =>
  hasCode(err, "ENOENT", "ECONNREFUSED", "ECONNRESET", "EPIPE", "UND_ERR_SOCKET", ...endedSessionCodes);

/** Error codes of Node's HTTP/2 client for a request on a session that the server has closed. */
const endedSessionCodes = ["ERR_HTTP2_STREAM_CANCEL", "ERR_HTTP2_GOAWAY_SESSION", "ERR_HTTP2_INVALID_SESSION"];

/** `retry` for a program that exits with a code other than 0 until the condition holds. */
export const hasExitCode = (err: Error): boolean => typeof (err as { code?: unknown }).code === "number";

/** Runs pending promise callbacks and immediates. For tests with a fake clock. */
export async function settle(rounds = 10): Promise<void> {
  for (let i = 0; i < rounds; i++) await new Promise((resolve) => setImmediate(resolve));
}
