/**
 * Lets browsers of the allowed origins in; without --cors-allowed-origins there is no such filter.
 * Source: k8s.io/apiserver pkg/server/filters/cors.go
 */
import { RE2JS } from "re2js";
import type { Filter } from "./filter.ts";

const headers = {
  "access-control-allow-methods": "POST, GET, OPTIONS, PUT, DELETE, PATCH",
  "access-control-allow-headers":
    "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since",
  "access-control-expose-headers": "Date",
  "access-control-allow-credentials": "true",
};

/** @param origins regular expressions in Go's syntax, matched anywhere in the text. @throws Error when one does not compile. */
export function originPatterns(origins: readonly string[]): RE2JS[] {
  return origins.map((origin) => RE2JS.compile(origin));
}

export function cors(origins: readonly string[]): Filter {
  const patterns = originPatterns(origins);
  return (request, next) => {
    const origin = request.exchange.headers.origin;
    if (origin === undefined || !patterns.some((pattern) => pattern.matcher(origin).find())) return next(request);
    request.exchange.setHeader("access-control-allow-origin", origin);
    for (const [name, value] of Object.entries(headers)) request.exchange.setHeader(name, value);
    // A preflight carries no credentials: it is answered here.
    if (request.exchange.method === "OPTIONS") return request.exchange.respond(204, {});
    return next(request);
  };
}
