import type { ServerRequest } from "../request/server-request.ts";

export type Handler = (request: ServerRequest) => Promise<void> | void;

/** Calls `next`, or answers, or throws. A thrown StatusError becomes the response. */
export type Filter = (request: ServerRequest, next: Handler) => Promise<void> | void;

/** Composes filters, the first one outermost. Called once, so that passing the chain allocates nothing per request. */
export function compose(filters: readonly Filter[], last: Handler): Handler {
  return filters.reduceRight<Handler>((next, filter) => (request) => filter(request, next), last);
}
