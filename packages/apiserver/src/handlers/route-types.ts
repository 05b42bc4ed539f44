/**
 * What a route refuses by media types alone, before its handler looks at the request. Only built-in resources and
 * discovery have routes in this sense; custom resources negotiate in their handlers.
 * Source: go-restful 2.9 jsr311.go detectRoute and route.go matchesAccept; apiserver's service error handler
 */
import { genericServerResponse } from "@coxswain/apimachinery/errors/status-error";
import type { RequestContext } from "../request/context.ts";
import { jsonType, protobufType, yamlType } from "./response.ts";

const produced: ReadonlySet<string> = new Set(["*/*", jsonType, yamlType, protobufType]);
/** Of a route that knows no other form. */
export const onlyJson: ReadonlySet<string> = new Set(["*/*", jsonType]);

/**
 * Parameters do not count here, and of wildcards only the full one.
 * @throws NotAcceptable, with a text of its own, when no clause of Accept names a type that the route produces.
 */
export function checkAccept({ exchange }: RequestContext, types = produced): void {
  const accept = exchange.headers.accept || "*/*";
  if (types.has(accept) || accept.split(",").some((clause) => types.has(bareType(clause)))) return;
  throw routeRefusal(406, "406: Not Acceptable");
}

/** Of a patch. Without a body of a known length the router goes on to Accept, with no route left that could suit. */
export function unsupportedByRoute({ exchange }: RequestContext): Error {
  if (!(Number(exchange.headers["content-length"]) > 0)) return routeRefusal(406, "406: Not Acceptable");
  return routeRefusal(415, "415: Unsupported Media Type");
}

/** Of a path that has routes, for other methods. */
export function methodNotAllowed(): Error {
  return routeRefusal(405, "");
}

/** A name of nothing: the answer's details are there, and empty. */
function routeRefusal(code: number, message: string): Error {
  return genericServerResponse(code, "", { group: "", resource: "" }, "", message, 0, false);
}

function bareType(clause: string): string {
  return (clause.split(";", 1)[0] ?? "").trim();
}
