/**
 * Lets browsers of the allowed origins in; without --cors-allowed-origins there is no such filter.
 * Source: k8s.io/apiserver pkg/server/filters/cors.go
 */
import { Pattern } from "@coxswain/apimachinery/validation/pattern";
import type { Filter } from "./filter.ts";

const headers = {
  "access-control-allow-methods": "POST, GET, OPTIONS, PUT, DELETE, PATCH",
  "access-control-allow-headers":
    "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since",
  "access-control-expose-headers": "Date",
  "access-control-allow-credentials": "true",
};

/**
 * @param origins regular expressions in Go's syntax, matched anywhere in the text
 * @throws PatternError when one does not compile or is too large
 */
export function originPatterns(origins: readonly string[]): Pattern[] {
  return origins.map((origin) => new Pattern(origin));
}

export function cors(origins: readonly string[]): Filter {
  const patterns = originPatterns(origins);
  // No origin is so long that it takes long to match; who sends one is anybody.
  const isAllowed = (origin: string): boolean => patterns.some((pattern) => pattern.canMatch(origin) && pattern.matches(origin));
  return (request, next) => {
    const origin = request.exchange.headers.origin;
    if (origin === undefined || !isAllowed(origin)) return next(request);
    request.exchange.setHeader("access-control-allow-origin", origin);
    for (const [name, value] of Object.entries(headers)) request.exchange.setHeader(name, value);
    // A preflight carries no credentials: it is answered here.
    if (request.exchange.method === "OPTIONS") return request.exchange.respond(204, {});
    return next(request);
  };
}
