import type { ServerRequest } from "../request/server-request.ts";

export type Handler = (request: ServerRequest) => Promise<void> | void;

/** Calls `next`, or answers or throws instead. A StatusError that is thrown becomes the answer. */
export type Filter = (request: ServerRequest, next: Handler) => Promise<void> | void;

/** The first filter is the outermost. Made once, so that a request allocates nothing for passing the chain. */
export function compose(filters: readonly Filter[], last: Handler): Handler {
  return filters.reduceRight<Handler>((next, filter) => (request) => filter(request, next), last);
}
