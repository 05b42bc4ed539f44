import type { ServerRequest } from "../request/server-request.ts";

export type Handler = (request: ServerRequest) => Promise<void> | void;

/** Calls `next`, or answers, or throws. A thrown StatusError becomes the response. */
export type Filter = (request: ServerRequest, next: Handler) => Promise<void> | void;
