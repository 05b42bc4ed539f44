/**
 * Lets browsers of the allowed origins in; without --cors-allowed-origins there is no such filter.
 * Source: k8s.io/apiserver pkg/server/filters/cors.go
 */
import type { Filter } from "./filter.ts";

const headers = {
  "access-control-allow-methods": "POST, GET, OPTIONS, PUT, DELETE, PATCH",
  "access-control-allow-headers":
    "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since",
  "access-control-expose-headers": "Date",
  "access-control-allow-credentials": "true",
};

/** The patterns are the operator's, the text is anybody's: a short text keeps a careless pattern from costing much. */
const longestOrigin = 300;

/** @param origins regular expressions. @throws Error at start when one does not compile. */
export function cors(origins: readonly string[]): Filter {
  const patterns = origins.map((origin) => new RegExp(origin));
  return (request, next) => {
    const origin = request.exchange.headers.origin;
    if (origin === undefined || origin.length > longestOrigin || !patterns.some((pattern) => pattern.test(origin))) {
      return next(request);
    }
    request.exchange.setHeader("access-control-allow-origin", origin);
    for (const [name, value] of Object.entries(headers)) request.exchange.setHeader(name, value);
    // A preflight carries no credentials: it is answered here.
    if (request.exchange.method === "OPTIONS") return request.exchange.respond(204, {});
    return next(request);
  };
}
