import type { ExchangeHandler } from "@coxswain/apimachinery/serving/exchange";
import { expressHandler } from "@coxswain/apimachinery/serving/express-handler";
import express from "express";
import type { EdgeOptions } from "./edge.ts";

/** The keys of service-account tokens: what only who watches over the server asks for. */
export function newPages({ documents }: EdgeOptions): ExchangeHandler {
  const app = express();
  app.disable("x-powered-by");
  app.disable("etag");
  if (documents !== undefined) {
    const headers = { "cache-control": "public, max-age=3600" };
    app.get("/.well-known/openid-configuration", (_request, response) => {
      response.writeHead(200, { ...headers, "content-type": "application/json" }).end(documents.configuration);
    });
    app.get("/openid/v1/jwks", (_request, response) => {
      response.writeHead(200, { ...headers, "content-type": "application/jwk-set+json" }).end(documents.keySet);
    });
  }
  return expressHandler(app);
}
