/**
 * Shutting down with --shutdown-send-retry-after: new requests get 429 and are told to come back on a new connection,
 * which a load balancer leads to another server. Health, metrics and the server's own requests go on.
 * Source: k8s.io/apiserver pkg/server/filters/with_retry_after.go
 */
import { apiserverUser } from "../request/user-names.ts";
import type { Filter } from "./filter.ts";

export interface Drain {
  /** Set when termination begins and the flag is on. */
  sendRetryAfter: boolean;
}

const exempt = ["/readyz", "/livez", "/healthz", "/metrics"];

export function drain(state: Drain): Filter {
  return (request, next) => {
    if (!state.sendRetryAfter || request.user.name === apiserverUser) return next(request);
    if (exempt.some((path) => request.info.path === path || request.info.path.startsWith(`${path}/`))) return next(request);
    request.exchange.goAway();
    request.exchange.respond(
      429,
      { "content-type": "text/plain; charset=utf-8", "retry-after": "5" },
      "The apiserver is shutting down, please try again later.",
    );
  };
}
