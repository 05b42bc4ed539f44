import { randomUUID } from "node:crypto";
import type { Exchange } from "@coxswain/apimachinery/serving/exchange";
import type { AuditTrail } from "./audit-trail.ts";
import type { RequestContext, UserInfo } from "./context.ts";
import { queryOf, type RequestInfo } from "./request-info.ts";
import { Warnings } from "./warnings.ts";

const anonymousUser: UserInfo = { name: "system:anonymous", groups: ["system:unauthenticated"] };

/**
 * The context of one request, filled by the filters. What most requests do not need (the parsed query, a signal that includes
 * the deadline) is created on first use.
 */
export class ServerRequest implements RequestContext {
  /** Replaced once, by the audit filter. */
  exchange: Exchange;
  readonly info: RequestInfo;
  readonly auditId: string;
  /** Milliseconds since the epoch. */
  readonly receivedMs: number;
  readonly longRunning: boolean;
  user: UserInfo = anonymousUser;
  /** Audit annotations of the credential, kept until the audit filter, which runs after authentication. */
  credentialNotes: Readonly<Record<string, string>> | undefined;
  deadlineMs: number | undefined;
  audit: AuditTrail | undefined;
  /** Start of the current filter, as `performance.now()`. */
  filterStartedMs = 0;
  /** Set by the limiter of concurrent requests. */
  receive: ((body: Promise<Buffer>) => Promise<Buffer>) | undefined;
  /** Called by a watch when its initial events are sent. */
  watchStarted: (() => void) | undefined;
  /** Total time spent in admission webhooks. */
  webhookMs = 0;
  #validatingMs = 0;
  #query: URLSearchParams | undefined;
  #cancel: AbortController | undefined;
  #signal: AbortSignal | undefined;
  #unbind: (() => void) | undefined;
  readonly #stopping: AbortSignal | undefined;
  #warnings: Warnings | undefined;

  /** @param stopping aborted when the server stops, which ends watches and streams */
  constructor(exchange: Exchange, info: RequestInfo, receivedMs: number, longRunning: boolean, stopping?: AbortSignal) {
    this.exchange = exchange;
    this.info = info;
    this.receivedMs = receivedMs;
    this.longRunning = longRunning;
    this.#stopping = stopping;
    this.auditId = auditIdOf(exchange);
  }

  /** Validating webhooks run in parallel, so only the slowest one counts. Source: request/webhook_duration.go */
  webhookTook(type: "admit" | "validating", ms: number): void {
    const more = type === "admit" ? ms : Math.max(0, ms - this.#validatingMs);
    if (type === "validating") this.#validatingMs += more;
    this.webhookMs += more;
  }

  get query(): URLSearchParams {
    if (this.#query === undefined) {
      this.#query = queryOf(this.exchange.url);
    }
    return this.#query;
  }

  /** Aborted when the client disconnects, at the deadline, and, for long-running requests, when the server stops. */
  get signal(): AbortSignal {
    if (this.#signal !== undefined) return this.#signal;
    const { signal } = this.exchange;
    const other = this.longRunning ? this.#stopping : undefined;
    if (this.deadlineMs === undefined && other === undefined) {
      this.#signal = signal;
      return signal;
    }
    // AbortSignal.any costs more than the rest of a small request.
    const cancel = new AbortController();
    this.#cancel = cancel;
    this.#signal = cancel.signal;
    abortWith(signal, cancel);
    if (other !== undefined) this.#unbind = abortWith(other, cancel);
    return this.#signal;
  }

  /** Called when the request has been handled. The server's signal outlives it, and would keep its listener. */
  handled(): void {
    this.#unbind?.();
  }

  /** Cheaper than `signal` for a request of limited duration. @throws the reason of the abort */
  throwIfAborted(): void {
    if (this.#signal !== undefined || this.longRunning || this.exchange.isGone) this.signal.throwIfAborted();
  }

  /** Called by the timeout filter when the deadline passes. */
  abort(reason: Error): void {
    // Creates the signal if necessary, so that later readers find it aborted.
    void this.signal;
    this.#cancel?.abort(reason);
  }

  /** Adds a `Warning` header to the response. */
  warn(text: string): void {
    this.#warnings ??= new Warnings();
    this.#warnings.add(this.exchange, text);
  }
}

/** Aborts `cancel` when `source` is aborted. @returns a function that removes the listener */
function abortWith(source: AbortSignal, cancel: AbortController): () => void {
  const abort = (): void => cancel.abort(source.reason);
  if (source.aborted) abort();
  else source.addEventListener("abort", abort, { once: true });
  return () => source.removeEventListener("abort", abort);
}

/** The client's Audit-ID when it is valid and short, as upstream does; otherwise a new one. */
function auditIdOf(exchange: Exchange): string {
  const given = exchange.headers["audit-id"];
  return typeof given === "string" && given !== "" && given.length <= 64 && /^[\x21-\x7e]+$/.test(given) ? given : randomUUID();
}
