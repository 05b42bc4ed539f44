import type { IncomingMessage, ServerResponse } from "node:http";
import { finished } from "node:stream";
import express, { type Express } from "express";
import type { Exchange, ExchangeHandler } from "./exchange.ts";
import { ExchangeRequest } from "./express-request.ts";
import { ExchangeResponse } from "./express-response.ts";

/** Express' prototypes of requests and responses, on top of ours instead of Node's. */
const requestLayer = layerOver(ExchangeRequest.prototype, express.request);
const responseLayer = layerOver(ExchangeResponse.prototype, express.response);

/**
 * Serves an Express application over any exchange. The application, and everything mounted below it, can serve nothing else
 * afterwards. Errors are shown without their stack.
 * @returns a handler that resolves when the response is complete or the client has disconnected
 */
export function expressHandler(app: Express): ExchangeHandler {
  app.set("env", "production");
  Object.setPrototypeOf(app.request, requestLayer);
  Object.setPrototypeOf(app.response, responseLayer);
  return (exchange) => (exchange.isGone ? undefined : serve(app, exchange));
}

function serve(app: Express, exchange: Exchange): Promise<void> {
  const request = new ExchangeRequest(exchange);
  const response = new ExchangeResponse(exchange, request);
  const giveUp = (): void => {
    request.destroy();
    response.destroy();
  };
  exchange.signal.addEventListener("abort", giveUp, { once: true });
  return new Promise((resolve) => {
    finished(response, () => resolve());
    // Cast: express uses no more of them than these classes have.
    app(request as unknown as IncomingMessage, response as unknown as ServerResponse);
  });
}

/** Express sets the prototype of each request to `app.request`, so ours has to be further up the chain. */
function layerOver(base: object, layer: object): object {
  return Object.create(base, Object.getOwnPropertyDescriptors(layer));
}
