/**
 * Responses with one object or an error: in JSON, YAML or protobuf; as itself, as Table or as metadata only. Stored objects
 * are sent as the cached bytes. Lists are in write-list.ts.
 */
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { encodeObject } from "@coxswain/apimachinery/objects/codec/codec";
import { encodeJson, indentJson } from "@coxswain/apimachinery/objects/codec/json";
import { encodeJsonTextInSteps } from "@coxswain/apimachinery/objects/codec/json-encode-steps";
import { jsonMediaType, negotiateOutput, protobufMediaType, yamlMediaType } from "@coxswain/apimachinery/objects/codec/negotiate";
import { encodeProtobuf } from "@coxswain/apimachinery/objects/codec/protobuf";
import { yamlOfJsonInSteps } from "@coxswain/apimachinery/objects/codec/yaml";
import { StatusError, statusOf } from "@coxswain/apimachinery/objects/errors/status-error";
import { type GroupVersionKind, parseGroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject, ListMeta, Status, StatusDetails } from "@coxswain/apimachinery/objects/meta/types";
import type { Exchange } from "@coxswain/apimachinery/serving/exchange";
import type { RequestContext } from "../request/context.ts";
import { queryOf } from "../request/request-info.ts";
import type { Entry } from "../storage/storage.ts";
import { jsonInSteps, jsonOf, objectOf, protobufInSteps, protobufOf } from "./convert.ts";
import type { Call } from "./env.ts";
import { type Output, wantsIndent } from "./negotiation.ts";
import type { ServedResource } from "./served-resources.ts";
import {
  includeObjectParam,
  objectRequestedAsList,
  partialMetadata,
  responseRequestedAsList,
  type TableOptions,
  tableJson,
} from "./transform.ts";

const statusKind: GroupVersionKind = { group: "", version: "v1", kind: "Status" };

/** Smaller bodies are not compressed. Source: handlers/responsewriters/writers.go, defaultGzipThresholdBytes */
const compressFromBytes = 128 * 1024;
export const gzipLevel = 4;

/** Responds with a stored object in the request's version. */
export async function writeEntry(call: Call, status: number, stored: Entry, output: Output): Promise<void> {
  const { turns } = call.env.services;
  await turns.next(stored.smallBytes);
  if (output.as === undefined && stored.isLarge) {
    await turns.run(stored.encodeInSteps());
    const [entry, { served }] = [linkedEntry(call, stored), call];
    await turns.run(output.mediaType === protobufMediaType ? protobufInSteps(entry, served) : jsonInSteps(entry, served));
    if (output.mediaType === yamlMediaType) return writeYamlOf(call, status, `${jsonOf(entry, served)}`);
  }
  return encodeAndSend(call, status, stored, output);
}

/** Converts JSON to YAML, yielding to the event loop, and sends it. */
async function writeYamlOf({ ctx, env }: Call, status: number, json: string): Promise<void> {
  return send(ctx, status, yamlMediaType, await env.services.turns.run(yamlOfJsonInSteps(json)));
}

function encodeAndSend(call: Call, status: number, stored: Entry, output: Output): Promise<void> {
  const { served, ctx } = call;
  const entry = linkedEntry(call, stored);
  const metaVersion = output.version ?? "v1";
  switch (output.as) {
    case "Table":
      return writeTable(call, status, { resourceVersion: String(entry.revision) }, [entry], output);
    case "PartialObjectMetadata":
      return writeMeta(call, status, partialMetadata(entry.object(), metaVersion), output);
    case "PartialObjectMetadataList":
      throw objectRequestedAsList(served.definition);
    default:
      if (output.mediaType === jsonMediaType) {
        if (output.indent) return sendJson(ctx, status, jsonOf(entry, served), true);
        return send(ctx, status, jsonMediaType, jsonLineOf(entry, served));
      }
      if (output.mediaType === protobufMediaType) return send(ctx, status, protobufMediaType, protobufOf(entry, served));
      return send(ctx, status, yamlMediaType, encodeObject(objectOf(entry, served), yamlMediaType));
  }
}

/** JSON of GET responses: with a trailing newline. */
function jsonLineOf(entry: Entry, served: ServedResource): Buffer {
  return served.isHub ? entry.jsonLine() : Buffer.concat([jsonOf(entry, served), newline]);
}

/** Responds with an object that is not stored (reviews, scales, Status), in its own apiVersion and kind. */
export function writeObject(ctx: RequestContext, status: number, object: KubeObject, output: Output): Promise<void> {
  const kind = { ...(parseGroupVersion(object.apiVersion ?? "v1") ?? { group: "", version: "v1" }), kind: object.kind ?? "" };
  if (output.mediaType === protobufMediaType) return send(ctx, status, protobufMediaType, encodeProtobuf(object, kind));
  if (output.mediaType === yamlMediaType) return send(ctx, status, yamlMediaType, encodeObject(object, yamlMediaType));
  return sendJson(ctx, status, encodeJson(object, kind), output.indent);
}

/**
 * Responds with the result of a subresource or virtual resource, or only its metadata when requested. A Status is sent unchanged.
 * @throws NotAcceptable when a list is requested
 */
export function writeAnswer(call: Call, status: number, answer: KubeObject, output: Output): Promise<void> {
  if (answer.kind === "Status") return writeObject(call.ctx, status, answer, output);
  const object = withOwnLink(call, answer);
  if (output.as === "PartialObjectMetadataList") throw responseRequestedAsList(object);
  if (output.as !== "PartialObjectMetadata") return writeObject(call.ctx, status, object, output);
  return writeMeta(call, status, partialMetadata(object, output.version ?? "v1"), output);
}

/** Responds with Status `Success`. */
export function writeSuccess(
  ctx: RequestContext,
  httpStatus: number,
  details: StatusDetails | undefined,
  output: Output,
): Promise<void> {
  const status: Status = {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Success",
    ...(details === undefined ? {} : { details }),
  };
  return writeObject(ctx, httpStatus, status, output);
}

function writeTable(call: Call, status: number, metadata: ListMeta, entries: readonly Entry[], output: Output): Promise<void> {
  const { ctx, served } = call;
  const json = tableJson(served, metadata, entries, tableOptions(call, output), served.definition.table);
  if (output.mediaType === yamlMediaType) return writeYamlOf(call, status, json);
  return sendJson(ctx, status, Buffer.from(json), output.indent);
}

/** @throws BadRequest */
export function tableOptions(call: Call, output: Output): TableOptions {
  return {
    includeObject: includeObjectParam(call.ctx.query),
    metaVersion: output.version ?? "v1",
    now: call.env.services.now(),
  };
}

async function writeMeta(call: Call, status: number, object: KubeObject, output: Output): Promise<void> {
  const { ctx, env } = call;
  const kind = { ...metaGroupVersion(object), kind: object.kind ?? "" };
  if (output.mediaType === protobufMediaType) return send(ctx, status, protobufMediaType, encodeProtobuf(object, kind));
  const json = await env.services.turns.run(encodeJsonTextInSteps(object, kind));
  if (output.mediaType === yamlMediaType) return writeYamlOf(call, status, json);
  return sendJson(ctx, status, Buffer.from(json), output.indent);
}

function metaGroupVersion(object: KubeObject): { group: string; version: string } {
  return parseGroupVersion(object.apiVersion ?? "") ?? { group: "meta.k8s.io", version: "v1" };
}

function sendJson(ctx: RequestContext, status: number, json: Buffer, indent: boolean): Promise<void> {
  // Indented JSON ends without a newline, compact JSON with one, as upstream's encoders do.
  const body = indent ? Buffer.from(indentJson(json.toString().trimEnd())) : Buffer.concat([json, newline]);
  return send(ctx, status, jsonMediaType, body);
}

const newline = Buffer.from("\n");

/** Sends a complete body, compressed when the client accepts it and the body is large enough. */
export async function send(ctx: RequestContext, status: number, mediaType: string, body: Buffer | string): Promise<void> {
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  if (!wantsGzip(ctx, bytes.length)) return ctx.exchange.respond(status, { "content-type": mediaType }, bytes);
  const packed = await promisify(gzip)(bytes, { level: gzipLevel });
  const headers = { "content-type": mediaType, "content-encoding": "gzip", vary: "Accept-Encoding" };
  ctx.exchange.respond(status, headers, packed);
}

function wantsGzip(ctx: RequestContext, sizeBytes: number): boolean {
  return sizeBytes > compressFromBytes && acceptsGzip(ctx.exchange.headers["accept-encoding"]);
}

/**
 * As upstream, matches `gzip` without parameters only; `gzip;q=0` therefore does not match.
 * Source: responsewriters/writers.go
 */
export function acceptsGzip(header: string | string[] | undefined): boolean {
  const text = Array.isArray(header) ? header.join(",") : (header ?? "");
  return text.split(",").some((encoding) => encoding.trim() === "gzip");
}

/**
 * Responds with the Status of an error in the negotiated encoding (default JSON), with Retry-After when the error has one.
 * After the headers are sent it closes the connection.
 */
export function writeError(exchange: Exchange, err: unknown, ctx?: RequestContext): void {
  if (exchange.headersSent) {
    exchange.destroy();
    return;
  }
  const status = statusOf(err);
  const code = status.code ?? 500;
  const headers: Record<string, string> = { ...(err instanceof StatusError ? err.headers : undefined) };
  const retryAfter = status.details?.retryAfterSeconds;
  if (retryAfter !== undefined && retryAfter > 0 && headers["retry-after"] === undefined)
    headers["retry-after"] = String(retryAfter);
  const { mediaType, indent } = errorOutput(exchange, ctx);
  exchange.respond(code, { ...headers, "content-type": mediaType }, encodeStatus(status, mediaType, indent));
}

/** Encodes a Status; JSON ends with a newline unless indented. */
export function encodeStatus(status: Status, mediaType: string, indent: boolean): Buffer {
  const object: KubeObject = { ...status, kind: "Status", apiVersion: "v1" };
  if (mediaType === protobufMediaType) return encodeProtobuf(object, statusKind);
  if (mediaType === yamlMediaType) return encodeObject(object, yamlMediaType);
  const json = encodeJson(object, statusKind);
  return indent ? Buffer.from(indentJson(json.toString().trimEnd())) : Buffer.concat([json, newline]);
}

function errorOutput(exchange: Exchange, ctx: RequestContext | undefined): { mediaType: string; indent: boolean } {
  // Errors are not rendered as Table etc. When nothing is acceptable, they are indented JSON.
  const query = ctx?.query ?? queryOf(exchange.url);
  const indent = wantsIndent(query, exchange.headers["user-agent"]);
  try {
    const { mediaType } = negotiateOutput(exchange.headers.accept);
    return { mediaType, indent };
  } catch {
    return { mediaType: jsonMediaType, indent: true };
  }
}

/**
 * The entry with its self link, if enabled.
 * Source: k8s.io/apiserver pkg/endpoints/handlers/response.go setObjectSelfLink, namer.go
 */
export function linkedEntry(call: Call, entry: Entry): Entry {
  return call.env.gates.namesLinks ? entry.with(withLink(call, entry.object())) : entry;
}

/** As `linkedEntry`, for an object that is not stored; without a name it has no link. */
function withOwnLink(call: Call, object: KubeObject): KubeObject {
  return call.env.gates.namesLinks && (object.metadata?.name ?? "") !== "" ? withLink(call, object) : object;
}

/** The list with self links of the list and of each item, if enabled. */
export function linkedList(call: Call, entries: Entry[]): { entries: Entry[]; selfLink?: string } {
  if (!call.env.gates.namesLinks) return { entries };
  const { definition } = call.served;
  const inNamespace = definition.namespaced && call.namespace !== "" ? `/namespaces/${call.namespace}` : "";
  return {
    entries: entries.map((entry) => linkedEntry(call, entry)),
    selfLink: `${rootOf(call)}${inNamespace}/${definition.resource}`,
  };
}

function withLink(call: Call, object: KubeObject): KubeObject {
  const { definition } = call.served;
  const { name = "", namespace = "" } = object.metadata;
  const inNamespace = definition.namespaced ? `/namespaces/${namespace || call.namespace}` : "";
  const below = call.subresource === "" ? "" : `/${call.subresource}`;
  const selfLink = `${rootOf(call)}${inNamespace}/${definition.resource}/${name}${below}`;
  return { ...object, metadata: { ...object.metadata, selfLink } };
}

function rootOf({ served: { kind } }: Call): string {
  return kind.group === "" ? `/api/${kind.version}` : `/apis/${kind.group}/${kind.version}`;
}
