import type { ClientRequest } from "node:http";
import { goQuote } from "../objects/meta/go-quote.ts";

/**
 * Rejects a 101 response to a request without an Upgrade header, and closes its connection. Without an `upgrade` listener
 * Node emits no further event on the request, not even when it is aborted.
 */
export function onUnsolicitedUpgrade(request: ClientRequest, refuse: (err: Error) => void): void {
  request.once("upgrade", ({ headers }, socket) => {
    socket.destroy();
    refuse(new Error(`backend tried to switch protocol ${goQuote(headers.upgrade ?? "")} when "" was requested`));
  });
}
