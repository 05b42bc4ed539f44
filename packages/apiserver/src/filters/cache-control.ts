/**
 * Forbids caching of responses, and sets Strict-Transport-Security when directives are configured.
 * Source: k8s.io/apiserver pkg/endpoints/filters/cachecontrol.go, pkg/server/filters/hsts.go
 */
import type { Filter } from "./filter.ts";

export function cacheControl(hstsDirectives: readonly string[]): Filter {
  const hsts = hstsDirectives.join("; ");
  return (request, next) => {
    request.exchange.setHeader("cache-control", "no-cache, private");
    if (hsts !== "") request.exchange.setHeader("strict-transport-security", hsts);
    return next(request);
  };
}
