import type { IncomingMessage, ServerResponse } from "node:http";
import { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import { finished } from "node:stream";
import type { Express } from "express";
import type { ExchangeHandler } from "./exchange.ts";

/**
 * Serves an Express application over both protocols. Express gives each request its own prototype, which is one of
 * HTTP/1.1: over HTTP/2 it is handed another, with the same methods. Applications mounted below it would take the
 * first one again; use routers.
 * @returns resolves when the answer is complete or the client gone
 */
export function expressHandler(app: Express): ExchangeHandler {
  const http1 = { request: app.request, response: app.response };
  const http2 = {
    request: rebased(app.request, Http2ServerRequest.prototype) as typeof app.request,
    response: rebased(app.response, Http2ServerResponse.prototype) as typeof app.response,
  };
  return (exchange) =>
    new Promise((resolve) => {
      const response = exchange.nodeResponse as ServerResponse;
      finished(response, () => resolve());
      // Express reads these at once, before anything else can run.
      const prototypes = exchange.httpVersion === "2.0" ? http2 : http1;
      app.request = prototypes.request;
      app.response = prototypes.response;
      app(exchange.nodeRequest as IncomingMessage, response);
      app.request = http1.request;
      app.response = http1.response;
    });
}

/** Everything that Express adds, from the application's own object down to the class of node's, over another class. */
function rebased(from: object, base: object): object {
  const layers: object[] = [];
  for (let layer = from; !isNodes(layer); layer = Object.getPrototypeOf(layer)) layers.unshift(layer);
  let proto = base;
  for (const layer of layers) proto = Object.create(proto, Object.getOwnPropertyDescriptors(layer));
  return proto;
}

function isNodes(layer: object | null): boolean {
  return layer === null || (Object.hasOwn(layer, "constructor") && layer.constructor.name !== "Object");
}
