import type { IncomingMessage, ServerResponse } from "node:http";
import { finished } from "node:stream";
import express, { type Express } from "express";
import type { Exchange, ExchangeHandler } from "./exchange.ts";
import { ExchangeRequest } from "./express-request.ts";
import { ExchangeResponse } from "./express-response.ts";

/** What Express adds to each request and answer, over ours in place of node's. */
const requestLayer = layerOver(ExchangeRequest.prototype, express.request);
const responseLayer = layerOver(ExchangeResponse.prototype, express.response);

/**
 * Serves an Express application over any exchange. From then on the application, and what is mounted below it, serves
 * nothing else. Errors are shown without their stack.
 * @returns resolves when the answer is complete or the client gone
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
    app(request as unknown as IncomingMessage, response as unknown as ServerResponse);
  });
}

/** Express gives each request its own prototype, so that ours has to be below it. */
function layerOver(base: object, layer: object): object {
  return Object.create(base, Object.getOwnPropertyDescriptors(layer));
}
