/**
 * `/openapi/v2`, in JSON and in the protobuf form that kubectl asks for. Made at the first request and again after the
 * served resources changed; kept as bytes, plain and packed, with an ETag.
 * Source: k8s.io/kube-openapi pkg/handler
 */
import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { notAcceptable } from "@coxswain/apimachinery/errors/status-error";
import { type OpenApiResource, openApiV2 } from "@coxswain/apimachinery/schema/openapi";
import type { RequestContext } from "../request/context.ts";
import { encodeOpenApi } from "./openapi-protobuf.ts";
import { acceptsGzip } from "./response.ts";
import type { ServedResource, ServedResources } from "./served-resources.ts";
import { findSubresource, subresourceNames } from "./subresource.ts";

const protobufSpec = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
type Form = "json" | "protobuf";

interface Served {
  readonly bytes: Buffer;
  readonly etag: string;
  packed?: Promise<Buffer>;
}

export function newOpenApi(resources: ServedResources): (ctx: RequestContext) => Promise<void> {
  let generation = -1;
  let lastModified = "";
  const forms = new Map<Form, Served>();
  const servedAs = (form: Form): Served => {
    if (generation !== resources.generation) {
      forms.clear();
      generation = resources.generation;
      lastModified = new Date().toUTCString();
    }
    let served = forms.get(form);
    if (served === undefined) {
      const document = openApiV2(resources.all().filter(isShown).map(describe));
      const bytes = form === "json" ? Buffer.from(JSON.stringify(document)) : encodeOpenApi(document);
      served = { bytes, etag: `"${createHash("sha512").update(bytes).digest("hex").toUpperCase()}"` };
      forms.set(form, served);
    }
    return served;
  };

  return async ({ exchange }) => {
    if (exchange.method !== "GET" && exchange.method !== "HEAD") {
      return exchange.respond(405, { "content-type": "text/plain; charset=utf-8" }, "Method Not Allowed\n");
    }
    const form = formOf(exchange.headers.accept);
    const served = servedAs(form);
    const headers: Record<string, string> = {
      "content-type": form === "json" ? "application/json" : "application/octet-stream",
      etag: served.etag,
      "last-modified": lastModified,
      vary: "Accept-Encoding, Accept",
      "cache-control": "no-cache, private",
    };
    if (matches(exchange.headers["if-none-match"], served.etag)) {
      delete headers["content-type"];
      return exchange.respond(304, headers);
    }
    if (!acceptsGzip(exchange.headers["accept-encoding"])) return exchange.respond(200, headers, served.bytes);
    served.packed ??= promisify(gzip)(served.bytes);
    exchange.respond(200, { ...headers, "content-encoding": "gzip" }, await served.packed);
  };
}

function isShown(served: ServedResource): boolean {
  return served.definition.itemsKeepKind !== true;
}

/** @throws NotAcceptable. */
function formOf(accept: string | undefined): Form {
  if (accept === undefined || accept.trim() === "") return "json";
  for (const range of accept.split(",")) {
    const type = range.split(";")[0]?.trim();
    if (type === protobufSpec) return "protobuf";
    if (type === "application/json" || type === "application/*" || type === "*/*") return "json";
  }
  throw notAcceptable(`only the following media types are accepted: application/json, ${protobufSpec}`);
}

function matches(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  return header.split(",").some((one) => one.trim().replace(/^W\//, "") === etag || one.trim() === "*");
}

function describe(served: ServedResource): OpenApiResource {
  const { definition, kind } = served;
  const virtual = definition.subresources?.[""];
  return {
    group: kind.group,
    version: kind.version,
    resource: definition.resource,
    kind: definition.kind,
    listKind: definition.listKind,
    namespaced: definition.namespaced,
    verbs: virtual?.verbs ?? definition.verbs,
    returnsDeleted: definition.returnDeletedObject === true,
    subresources: subresourceNames(definition).flatMap((name) => {
      const subresource = findSubresource(served, name);
      if (subresource === undefined) return [];
      const connect = definition.subresources?.[name]?.handler.type === "connect";
      return [{ name, kind: subresource.kind, verbs: subresource.verbs, connect }];
    }),
  };
}
