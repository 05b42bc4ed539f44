import type { ExchangeHandler } from "@coxswain/apimachinery/serving/exchange";
import { expressHandler } from "@coxswain/apimachinery/serving/express-handler";
import express from "express";
import type { IssuerDocuments } from "../authentication/token-issuer.ts";

/** The OpenID discovery documents of service-account tokens, which are rarely requested. */
export function newPages({ documents }: { readonly documents: IssuerDocuments | undefined }): ExchangeHandler {
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
