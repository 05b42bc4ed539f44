/**
 * A daemon that is started before its API server, or while that starts, waits for it instead of ending or of collecting
 * refusals.
 */
import type { Client } from "../client/client.ts";
import type { Clock } from "../clock/clock.ts";
import { causesOf } from "../errors/message.ts";
import { newBackoff } from "../informers/backoff.ts";
import type { Logger } from "../logging/logger.ts";

export interface WaitForServerOptions {
  /** What comes next, for the log: `the leader election`. */
  readonly purpose: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** Gives up after this time whatever the server says. Default: never, as long as nobody answers. */
  readonly timeoutMs?: number;
}

/** How long a server that answers may say that it is not ready, or that the daemon may not ask. */
const unreadyMs = 30_000;
const attemptMs = 10_000;
const backoff = { initialMs: 100, maxMs: 2_000, factor: 2, jitter: 0.2, resetAfterMs: Number.POSITIVE_INFINITY };

/**
 * Resolves with undefined when the API server says by /readyz that it is ready. Where nobody answers (a refused
 * connection, a 503 of the server or of a load balancer) it goes on asking, with growing pauses up to 2 s.
 * @returns why the server is not ready, when it has answered for 30 s that it is not (one check of many may fail for
 * ever), that it does not know the daemon (401) or that the daemon may not ask (403: before the default roles are there);
 * or when the time is over. What the caller asks next has a definite answer then.
 * @throws the signal's reason
 */
export async function waitForServer(client: Client, options: WaitForServerOptions): Promise<string | undefined> {
  const { purpose, clock, log, signal, timeoutMs = Number.POSITIVE_INFINITY } = options;
  const pauses = newBackoff({ ...backoff, clock });
  const startedMs = clock.monotonic();
  let answeringSinceMs: number | undefined;
  let reported: string | undefined;
  for (;;) {
    const { reason, answers } = await askReadiness(client, clock, signal);
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
      log.warn("the API server is not ready, going on", { purpose, reason });
      return reason;
    }
    await clock.sleep(pauses.next(), signal);
  }
}

interface Readiness {
  /** undefined: it is ready. */
  readonly reason: string | undefined;
  /** An API server has answered, and will not say anything else of its own accord. */
  readonly answers: boolean;
}

async function askReadiness(client: Client, clock: Clock, signal: AbortSignal): Promise<Readiness> {
  const attempt = new AbortController();
  const timer = clock.after(attemptMs, () => attempt.abort(new Error("no answer within 10 s")));
  try {
    const { status, body } = await client.raw("GET", "/readyz", { signal: AbortSignal.any([signal, attempt.signal]) });
    // Whoever has no such page (a proxy that lets only the API through) is as ready as it can say.
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
