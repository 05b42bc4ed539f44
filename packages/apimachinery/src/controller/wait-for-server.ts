/** Lets a daemon that starts before its API server wait for it instead of exiting or being refused. */
import type { Client } from "../client/client.ts";
import { newBackoff } from "../informers/backoff.ts";
import { causesOf } from "../objects/errors/message.ts";
import type { Clock } from "../process/clock/clock.ts";
import type { Logger } from "../process/logging/logger.ts";

interface WaitForServerOptions {
  /** What the daemon waits to do, for the log: `the leader election`. */
  readonly purpose: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** Overall time limit. Default: none while the server does not respond. */
  readonly timeoutMs?: number;
}

/** Time limit for a server that responds but is not ready or refuses the daemon. */
const unreadyMs = 30_000;
const attemptMs = 10_000;
const backoff = { initialMs: 100, maxMs: 2_000, factor: 2, jitter: 0.2, resetAfterMs: Number.POSITIVE_INFINITY };

/**
 * Waits until /readyz reports readiness. While the server is unreachable (refused connection, 503 of the server or a load
 * balancer) it retries with growing pauses up to 2 s.
 * @returns undefined when the server is ready. Otherwise the reason, after `timeoutMs`, or after 30 s of responses that the
 * server is not ready (a single check may fail permanently), does not authenticate the daemon (401) or denies it (403: before the
 * default roles exist). Later requests get definite responses in these cases.
 * @throws the signal's reason
 */
export async function waitForServer(client: Client, options: WaitForServerOptions): Promise<string | undefined> {
  const { purpose, clock, log, signal, timeoutMs = Number.POSITIVE_INFINITY } = options;
  const pauses = newBackoff({ ...backoff, clock });
  const startedMs = clock.monotonic();
  let answeringSinceMs: number | undefined;
  let reported: string | undefined;
  for (;;) {
    const { reason, answers } = await fetchReadiness(client, clock, signal);
    if (reason === undefined) {
      if (reported !== undefined) log.info("the API server is ready", { waitedMs: Math.round(clock.monotonic() - startedMs) });
      return undefined;
    }
    answeringSinceMs = answers ? (answeringSinceMs ?? clock.monotonic()) : undefined;
    if (reason !== reported) log.info("waiting for the API server to be ready", { purpose, reason });
    reported = reason;
    const now = clock.monotonic();
    const answeredMs = answeringSinceMs === undefined ? 0 : now - answeringSinceMs;
    if (answeredMs >= unreadyMs || now - startedMs >= timeoutMs) {
      log.warn("the API server is not ready; continuing", { purpose, reason });
      return reason;
    }
    await clock.sleep(pauses.next(), signal);
  }
}

interface Readiness {
  /** undefined when ready. */
  readonly reason: string | undefined;
  /** An API server has responded, so that waiting may not help. */
  readonly answers: boolean;
}

async function fetchReadiness(client: Client, clock: Clock, signal: AbortSignal): Promise<Readiness> {
  const attempt = new AbortController();
  const timer = clock.after(attemptMs, () => attempt.abort(new Error("no answer within 10 s")));
  try {
    const { status, body } = await client.raw("GET", "/readyz", { signal: AbortSignal.any([signal, attempt.signal]) });
    // A server without this page (a proxy that only forwards the API) counts as ready.
    if (status === 200 || status === 404) return { reason: undefined, answers: true };
    const failed = [...body.toString("utf8").matchAll(/^\[-\](\S+)/gm)].map(([, name]) => name);
    const which = failed.length === 0 ? "" : `: ${failed.join(",")}`;
    return { reason: `/readyz answers ${status}${which}`, answers: status < 502 };
  } catch (err) {
    signal.throwIfAborted();
    return { reason: causesOf(err), answers: false };
  } finally {
    timer.cancel();
  }
}
