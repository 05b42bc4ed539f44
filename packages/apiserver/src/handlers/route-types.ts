/**
 * Media type checks of upstream's routes, which run before the handler. Only built-in resources and discovery have such
 * routes; custom resources negotiate in their handlers.
 * Source: go-restful 2.9 jsr311.go detectRoute and route.go matchesAccept; apiserver's service error handler
 */
import { genericServerResponse } from "@coxswain/apimachinery/errors/status-error";
import type { RequestContext } from "../request/context.ts";
import { jsonType, protobufType, yamlType } from "./response.ts";

const produced: ReadonlySet<string> = new Set(["*/*", jsonType, yamlType, protobufType]);
/** Types of a route that only produces JSON. */
export const onlyJson: ReadonlySet<string> = new Set(["*/*", jsonType]);

/**
 * Parameters are ignored. The only wildcard that counts is the one for all types; `text/*`, for one, does not.
 * @throws NotAcceptable with go-restful's text when no clause of Accept names a type that the route produces
 */
export function checkAccept({ exchange }: RequestContext, types = produced): void {
  const accept = exchange.headers.accept || "*/*";
  if (types.has(accept) || accept.split(",").some((clause) => types.has(bareType(clause)))) return;
  throw routeRefusal(406, "406: Not Acceptable");
}

/**
 * The error for a patch's media type. Without a positive Content-Length go-restful goes on to Accept, where no route is left:
 * 406.
 */
export function unsupportedByRoute({ exchange }: RequestContext): Error {
  if (!(Number(exchange.headers["content-length"]) > 0)) return routeRefusal(406, "406: Not Acceptable");
  return routeRefusal(415, "415: Unsupported Media Type");
}

/** The error of an existing path with an unsupported method. */
export function methodNotAllowed(): Error {
  return routeRefusal(405, "");
}

/** With an empty kind, so that the details are present but empty. */
function routeRefusal(code: number, message: string): Error {
  return genericServerResponse(code, "", { group: "", resource: "" }, "", message, 0, false);
}

function bareType(clause: string): string {
  return (clause.split(";", 1)[0] ?? "").trim();
}
