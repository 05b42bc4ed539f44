import type { ClientRequest } from "node:http";
import { goQuote } from "../meta/go-quote.ts";

/**
 * Tells of an answer in another protocol to a request that asked for none, and ends its connection. Where nobody listens
 * for that, node says nothing more of the request, not even when it is aborted.
 */
export function onUnaskedUpgrade(request: ClientRequest, refuse: (err: Error) => void): void {
  request.once("upgrade", ({ headers }, socket) => {
    socket.destroy();
    refuse(new Error(`backend tried to switch protocol ${goQuote(headers.upgrade ?? "")} when "" was requested`));
  });
}
