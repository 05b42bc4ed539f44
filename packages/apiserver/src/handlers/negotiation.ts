/**
 * Negotiates the response: media type, form and indentation by `Accept`, `?pretty` and the User-Agent. Also the checks by which the routes
 * of built-in resources reject requests before their handler runs.
 */
import {
  jsonMediaType,
  type NegotiatedOutput,
  negotiateOutput,
  type OutputOptions,
  protobufMediaType,
  yamlMediaType,
} from "@coxswain/apimachinery/objects/codec/negotiate";
import { genericServerResponse } from "@coxswain/apimachinery/objects/errors/status-error";
import type { RequestContext } from "../request/context.ts";
import type { Call } from "./env.ts";

export interface Output extends NegotiatedOutput {
  readonly indent: boolean;
}

/** @throws NotAcceptable */
export function negotiate(ctx: RequestContext, options: OutputOptions = {}): Output {
  const negotiated = negotiateOutput(ctx.exchange.headers.accept, options);
  return { ...negotiated, indent: negotiated.pretty || wantsIndent(ctx.query, ctx.exchange.headers["user-agent"]) };
}

/**
 * Negotiates for a resource. Custom resources have protobuf only for their metadata. Subresources have no Table, except those
 * of custom resources; the router has checked Accept for them.
 * @throws NotAcceptable
 */
export function negotiateFor(call: Call, stream = false): Output {
  const isCustom = call.served.definition.custom === true;
  const tables = isCustom || call.subresource === "";
  if (!isCustom && call.subresource === "") checkAccept(call.ctx);
  return negotiate(call.ctx, { transforms: true, tables, protobuf: isCustom ? "metadata" : true, stream });
}

/** Source: Go's strconv.ParseBool */
const truths: ReadonlySet<string> = new Set(["1", "t", "T", "true", "True", "TRUE"]);

/** Whether to indent JSON: ?pretty is set, or absent and the User-Agent is a browser, curl or wget. */
export function wantsIndent(query: URLSearchParams, userAgent: string | undefined): boolean {
  const value = query.get("pretty");
  if (value !== null && value !== "") return truths.has(value);
  return /^(curl|Wget|Mozilla\/5\.0)/.test(userAgent ?? "");
}

/**
 * What upstream's routes produce; their check of media types is the first of a request. Only built-in resources and discovery have
 * such routes.
 * Source: go-restful 2.9 jsr311.go detectRoute and route.go matchesAccept; apiserver's service error handler
 */
const produced: ReadonlySet<string> = new Set(["*/*", jsonMediaType, yamlMediaType, protobufMediaType]);
/** Types of a route that only produces JSON. */
export const onlyJson: ReadonlySet<string> = new Set(["*/*", jsonMediaType]);

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
 * The error for a patch's media type. Without a positive Content-Length go-restful checks Accept next, for which no route is
 * left: 406.
 */
export function unsupportedByRoute({ exchange }: RequestContext): Error {
  if (!(Number(exchange.headers["content-length"]) > 0)) return routeRefusal(406, "406: Not Acceptable");
  return routeRefusal(415, "415: Unsupported Media Type");
}

/** The error of an existing path with an unsupported method. */
export function methodNotAllowed(): Error {
  return routeRefusal(405, "");
}

/** The Status has `details: {}`, as upstream's: an empty kind adds no field. */
function routeRefusal(code: number, message: string): Error {
  return genericServerResponse(code, "", { group: "", resource: "" }, "", message, 0, false);
}

function bareType(clause: string): string {
  return (clause.split(";", 1)[0] ?? "").trim();
}
