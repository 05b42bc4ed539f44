import type { UserInfo } from "@coxswain/apimachinery/serving/authentication/user";
import type { Exchange } from "@coxswain/apimachinery/serving/exchange";
import type { AuditTrail } from "./audit-trail.ts";
import type { RequestInfo } from "./request-info.ts";

export type { UserInfo } from "@coxswain/apimachinery/serving/authentication/user";

/** The request as handlers behind the filter chain see it; created once per request. */
export interface RequestContext {
  readonly exchange: Exchange;
  readonly info: RequestInfo;
  readonly query: URLSearchParams;
  /** Set by the authentication filter, replaced by impersonation. */
  user: UserInfo;
  readonly auditId: string;
  /** Milliseconds since the epoch; undefined for long-running requests. */
  deadlineMs: number | undefined;
  /** Aborted at the deadline, when the client disconnects, or when the server stops. */
  readonly signal: AbortSignal;
  /**
   * As `signal.throwIfAborted()`, but creates the signal only when it throws: that costs as much as the rest
   * of a read from memory.
   */
  throwIfAborted(): void;
  /** Set for requests that the audit policy records. */
  readonly audit?: AuditTrail | undefined;
  /** Adds a `Warning: 299 - "text"` header to the response. */
  warn(text: string): void;
  /** Waits for the request's body, without holding a seat of the limiter of concurrent requests. */
  receive?: ((body: Promise<Buffer>) => Promise<Buffer>) | undefined;
  /** Called by a watch when its initial events are sent. */
  watchStarted?: (() => void) | undefined;
  /**
   * Reports the duration of an admission webhook, which is excluded from the server's latency. Mutating webhooks are called
   * one after the other, validating ones in parallel.
   */
  webhookTook?(type: "admit" | "validating", ms: number): void;
}
