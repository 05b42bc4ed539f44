/**
 * CORS headers for the allowed origins; not part of the chain without --cors-allowed-origins.
 * Source: k8s.io/apiserver pkg/server/filters/cors.go
 */
import { Pattern } from "@coxswain/apimachinery/objects/validation/pattern";
import type { Filter } from "./filter.ts";

const headers = {
  "access-control-allow-methods": "POST, GET, OPTIONS, PUT, DELETE, PATCH",
  "access-control-allow-headers":
    "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since",
  "access-control-expose-headers": "Date",
  "access-control-allow-credentials": "true",
};

/**
 * @param origins regular expressions in Go's syntax, matched anywhere in the origin
 * @throws PatternError when one does not compile or is too large
 */
export function originPatterns(origins: readonly string[]): Pattern[] {
  return origins.map((origin) => new Pattern(origin));
}

/** @param origins as for `originPatterns` */
export function cors(origins: readonly string[]): Filter {
  const patterns = originPatterns(origins);
  // `canMatch` bounds the matching time, since any client can send any Origin.
  const isAllowed = (origin: string): boolean => patterns.some((pattern) => pattern.canMatch(origin) && pattern.matches(origin));
  return (request, next) => {
    const origin = request.exchange.headers.origin;
    if (origin === undefined || !isAllowed(origin)) return next(request);
    request.exchange.setHeader("access-control-allow-origin", origin);
    for (const [name, value] of Object.entries(headers)) request.exchange.setHeader(name, value);
    // A preflight has no credentials and must be answered before authentication.
    if (request.exchange.method === "OPTIONS") return request.exchange.respond(204, {});
    return next(request);
  };
}
