import type { UserInfo } from "@coxswain/apimachinery/serving/authentication/user";
import type { Exchange } from "@coxswain/apimachinery/serving/exchange";
import type { AuditTrail } from "./audit-trail.ts";
import type { RequestInfo } from "./request-info.ts";

export type { UserInfo } from "@coxswain/apimachinery/serving/authentication/user";

/** What the rooms after the filters need of a request; made once per request by the filter chain. */
export interface RequestContext {
  readonly exchange: Exchange;
  readonly info: RequestInfo;
  readonly query: URLSearchParams;
  /** Set by the authentication filter, replaced by impersonation. */
  user: UserInfo;
  readonly auditId: string;
  /** Milliseconds since the epoch; undefined for long-running requests. */
  deadlineMs: number | undefined;
  /** Aborted at the deadline, when the client goes away, or when the server stops. */
  readonly signal: AbortSignal;
  /** As of `signal`, which is made only when it throws: it costs as much as the rest of a read from memory. */
  throwIfAborted(): void;
  /** Of requests that the audit policy records. */
  readonly audit?: AuditTrail | undefined;
  /** Adds a `Warning: 299 - "text"` header to the answer. */
  warn(text: string): void;
  /** A watch calls it when it has sent what there was at its start. */
  watchStarted?: (() => void) | undefined;
  /** Time of admission webhooks, which is not the server's own. Those that change objects are asked one after the other. */
  webhookTook?(type: "admit" | "validating", ms: number): void;
}
