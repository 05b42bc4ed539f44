/**
 * Answers: one object, a list, an error; in JSON, YAML or protobuf, as itself, as Table or as metadata alone.
 * Stored objects go out as the bytes that the cache holds; lists are joined from them and written with back-pressure.
 */

import { promisify } from "node:util";
import { createGzip, gzip } from "node:zlib";
import { encodeObject } from "@coxswain/apimachinery/codec/codec";
import { encodeJson, indentJson, parseJson } from "@coxswain/apimachinery/codec/json";
import { type NegotiatedOutput, negotiateOutput } from "@coxswain/apimachinery/codec/negotiate";
import { encodeProtobuf } from "@coxswain/apimachinery/codec/protobuf";
import { toYaml } from "@coxswain/apimachinery/codec/yaml";
import { StatusError, statusOf } from "@coxswain/apimachinery/errors/status-error";
import { formatGroupVersion, type GroupVersionKind, parseGroupVersion } from "@coxswain/apimachinery/meta/group-version";
import type { KubeObject, ListMeta, Status, StatusDetails } from "@coxswain/apimachinery/meta/types";
import type { Exchange, ResponseStream } from "@coxswain/apimachinery/serving/exchange";
import type { RequestContext } from "../request/context.ts";
import type { Entry, ListResult } from "../storage/storage.ts";
import { jsonLineOf, jsonOf, objectOf, protobufOf } from "./convert.ts";
import type { Call } from "./env.ts";
import { fieldHead, jsonBody, type ListBody, ownBody, protobufBody, protobufItemSizes, varint } from "./list-body.ts";
import { wantsIndent } from "./pretty.ts";
import type { ServedResource } from "./served-resources.ts";
import { rowBytes } from "./table-row.ts";
import {
  includeObjectParam,
  listWantedAsObject,
  objectWantedAsList,
  partialMetadata,
  rowJson,
  type TableOptions,
  tableHead,
  tableJson,
} from "./transform.ts";
import { turns } from "./turns.ts";

export const jsonType = "application/json";
export const yamlType = "application/yaml";
export const protobufType = "application/vnd.kubernetes.protobuf";
const statusKind: GroupVersionKind = { group: "", version: "v1", kind: "Status" };

/** Bodies below this size are not worth compressing. Source: handlers/responsewriters/writers.go, defaultGzipThresholdBytes */
const compressFromBytes = 128 * 1024;
const gzipLevel = 4;

export interface Output extends NegotiatedOutput {
  readonly indent: boolean;
}

/** @throws NotAcceptable. */
export function negotiate(
  ctx: RequestContext,
  options: { transforms?: boolean; protobuf?: boolean; stream?: boolean } = {},
): Output {
  const negotiated = negotiateOutput(ctx.exchange.headers.accept, options);
  return { ...negotiated, indent: negotiated.pretty || wantsIndent(ctx.query, ctx.exchange.headers["user-agent"]) };
}

/** Custom resources have no protobuf form. */
export function negotiateFor(call: Call, stream = false): Output {
  return negotiate(call.ctx, { transforms: true, protobuf: call.served.definition.itemsKeepKind !== true, stream });
}

/** Answers with a stored object in the request's version. */
export function writeEntry(call: Call, status: number, entry: Entry, output: Output): Promise<void> {
  const { served, ctx } = call;
  const metaVersion = output.version ?? "v1";
  switch (output.as) {
    case "Table":
      return writeTable(call, status, { resourceVersion: String(entry.revision) }, [entry], output);
    case "PartialObjectMetadata":
      return writeMeta(ctx, status, partialMetadata(entry.object(), metaVersion), output);
    case "PartialObjectMetadataList":
      throw objectWantedAsList();
    default:
      if (output.mediaType === jsonType) {
        if (output.indent) return sendJson(ctx, status, jsonOf(entry, served), true);
        return send(ctx, status, jsonType, jsonLineOf(entry, served));
      }
      if (output.mediaType === protobufType) return send(ctx, status, protobufType, protobufOf(entry, served));
      return send(ctx, status, yamlType, encodeObject(objectOf(entry, served), yamlType));
  }
}

/** Answers with an object that is not stored: reviews, scales, Status. Its own apiVersion and kind count. */
export function writeObject(ctx: RequestContext, status: number, object: KubeObject, output: Output): Promise<void> {
  const kind = { ...(parseGroupVersion(object.apiVersion ?? "v1") ?? { group: "", version: "v1" }), kind: object.kind ?? "" };
  if (output.mediaType === protobufType) return send(ctx, status, protobufType, encodeProtobuf(object, kind));
  if (output.mediaType === yamlType) return send(ctx, status, yamlType, encodeObject(object, yamlType));
  return sendJson(ctx, status, encodeJson(object, kind), output.indent);
}

/** Answers `Success`; `code` is in the body only where upstream's is. */
export function writeSuccess(
  ctx: RequestContext,
  httpStatus: number,
  details: StatusDetails | undefined,
  output: Output,
  code?: number,
): Promise<void> {
  const status: Status = {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Success",
    ...(details === undefined ? {} : { details }),
    ...(code === undefined ? {} : { code }),
  };
  return writeObject(ctx, httpStatus, status as KubeObject, output);
}

/** Answers with what a list found, in the request's version. */
export async function writeList(call: Call, result: ListResult, output: Output): Promise<void> {
  const { served, ctx } = call;
  const metadata = listMeta(result);
  const metaVersion = output.version ?? "v1";
  switch (output.as) {
    case "Table":
      if (output.mediaType === jsonType && !output.indent)
        return writeParts(ctx, jsonType, tableList(call, metadata, result, output));
      return writeTable(call, 200, metadata, result.entries, output);
    case "PartialObjectMetadataList": {
      const items = result.entries.map((entry) => ({ metadata: entry.object().metadata }));
      const list = { kind: "PartialObjectMetadataList", apiVersion: `meta.k8s.io/${metaVersion}`, metadata, items };
      return writeMeta(ctx, 200, list as unknown as KubeObject, output);
    }
    case "PartialObjectMetadata":
      throw listWantedAsObject();
    default:
      if (output.mediaType === protobufType) return writeParts(ctx, protobufType, await protobufList(served, result));
      if (output.mediaType === jsonType && !output.indent) return writeParts(ctx, jsonType, jsonList(served, result));
      return writeWholeList(ctx, served, result, output);
  }
}

export function listMeta(result: ListResult): ListMeta {
  const metadata: ListMeta = { resourceVersion: String(result.revision) };
  if (result.continueToken !== undefined && result.continueToken !== "") metadata.continue = result.continueToken;
  if (result.remainingItemCount !== undefined) metadata.remainingItemCount = result.remainingItemCount;
  return metadata;
}

/** A list around its items. */
interface ListParts {
  readonly head: Buffer;
  readonly body: ListBody;
  readonly tail: Buffer;
  /** Of all, where it is known. */
  readonly sizeBytes?: number;
}

function jsonList(served: ServedResource, result: ListResult): ListParts {
  const { kind, definition } = served;
  const head = Buffer.from(
    `{"kind":${JSON.stringify(definition.listKind)},"apiVersion":${JSON.stringify(formatGroupVersion(kind))},` +
      `"metadata":${JSON.stringify(listMeta(result))},"items":[`,
  );
  return { head, body: jsonBody(result.entries, served), tail: endOfList };
}

const comma = Buffer.from(",");
const endOfList = Buffer.from("]}\n");

/** `XList { ListMeta metadata = 1; repeated X items = 2; }` in the envelope, the items as their entries keep them. */
async function protobufList(served: ServedResource, result: ListResult): Promise<ListParts> {
  const { kind, definition } = served;
  const metadata = protobufListMeta(listMeta(result));
  const metadataHead = fieldHead(1, metadata.length);
  // The length stands before the first item, so everything is encoded once before anything is sent.
  const sizeOf = protobufItemSizes(served);
  let messageBytes = metadataHead.length + metadata.length;
  for (const [index, entry] of result.entries.entries()) {
    if (index % 16 === 0) {
      const turn = turns.take();
      if (turn !== undefined) await turn;
    }
    messageBytes += sizeOf(entry);
  }
  const typeMeta = protobufTypeMeta(formatGroupVersion(kind), definition.listKind);
  const envelope = [magic, fieldHead(1, typeMeta.length), typeMeta, fieldHead(2, messageBytes)];
  const head = Buffer.concat([...envelope, metadataHead, metadata]);
  const tail = Buffer.concat([fieldHead(3, 0), fieldHead(4, 0)]);
  const sizeBytes = head.length - metadataHead.length - metadata.length + messageBytes + tail.length;
  return { head, body: protobufBody(result.entries, served), tail, sizeBytes };
}

const magic = Buffer.from("k8s\0", "latin1");

function protobufTypeMeta(apiVersion: string, kind: string): Buffer {
  return Buffer.concat([stringField(1, apiVersion), stringField(2, kind)]);
}

function protobufListMeta(metadata: ListMeta): Buffer {
  const parts = [stringField(1, ""), stringField(2, metadata.resourceVersion ?? ""), stringField(3, metadata.continue ?? "")];
  if (metadata.remainingItemCount !== undefined) parts.push(Buffer.from([4 << 3]), varint(metadata.remainingItemCount));
  return Buffer.concat(parts);
}

function stringField(field: number, value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([fieldHead(field, bytes.length), bytes]);
}

/** YAML and indented JSON are for people: built whole. */
function writeWholeList(ctx: RequestContext, served: ServedResource, result: ListResult, output: Output): Promise<void> {
  const { head, body, tail } = jsonList(served, result);
  const parts = [head];
  for (let index = 0, chunk = body.chunk(0); chunk !== undefined; chunk = body.chunk(++index)) parts.push(chunk);
  parts.push(tail);
  const json = Buffer.concat(parts);
  if (output.mediaType === jsonType) return sendJson(ctx, 200, json, true);
  return send(ctx, 200, yamlType, toYaml(parseJson(json)));
}

/** Writes a list chunk by chunk: never more than one ahead of the client, never long without giving way. */
async function writeParts(ctx: RequestContext, mediaType: string, list: ListParts): Promise<void> {
  const { exchange } = ctx;
  const { head, body, tail, sizeBytes } = list;
  const turn = turns.take();
  if (turn !== undefined) await turn;
  let chunk = body.chunk(0);
  if (chunk === undefined) return send(ctx, 200, mediaType, Buffer.concat([head, tail]));
  if (!body.hasAfter(0)) return send(ctx, 200, mediaType, Buffer.concat([head, chunk, tail]));
  const compressed = acceptsGzip(exchange.headers["accept-encoding"]);
  const response = exchange.stream(200, {
    "content-type": mediaType,
    ...(compressed && { "content-encoding": "gzip", vary: "Accept-Encoding" }),
    ...(!compressed && sizeBytes !== undefined && { "content-length": sizeBytes }),
  });
  const sink = compressed ? gzipInto(response, ctx.signal) : plainInto(response);
  await sink.write(head);
  for (let index = 0; chunk !== undefined; chunk = body.chunk(++index)) {
    if (ctx.signal.aborted) return exchange.destroy();
    const full = sink.write(chunk);
    if (full !== undefined) await full;
    const turn = turns.take();
    if (turn !== undefined) await turn;
  }
  await sink.write(tail);
  await sink.end();
}

interface Sink {
  write(chunk: Buffer): Promise<void> | void;
  end(): Promise<void> | void;
}

function plainInto(response: ResponseStream): Sink {
  return {
    write: (chunk) => (response.write(chunk) ? undefined : response.drained()),
    end: () => response.end(),
  };
}

function gzipInto(response: ResponseStream, signal: AbortSignal): Sink {
  const compressor = createGzip({ level: gzipLevel });
  let waiting: { resolve: () => void; reject: (err: Error) => void } | undefined;
  const giveUp = (): void => void compressor.destroy();
  const done = (async () => {
    for await (const chunk of compressor) {
      if (!response.write(chunk as Buffer)) await response.drained();
    }
    response.end();
  })();
  done.catch(giveUp);
  compressor.on("drain", () => waiting?.resolve());
  compressor.once("close", () => waiting?.reject(new Error("the client went away in the middle of a list")));
  signal.addEventListener("abort", giveUp, { once: true });
  return {
    write: (chunk) =>
      compressor.write(chunk)
        ? undefined
        : new Promise<void>((resolve, reject) => {
            waiting = { resolve, reject };
            if (compressor.destroyed) reject(new Error("the client went away in the middle of a list"));
          }),
    async end() {
      compressor.end();
      await done;
      signal.removeEventListener("abort", giveUp);
    },
  };
}

function tableList(call: Call, metadata: ListMeta, result: ListResult, output: Output): ListParts {
  const { served } = call;
  const options = tableOptions(call, output);
  const row = (entry: Entry, first: boolean): Uint8Array[] => {
    const bytes = rowBytes(served, entry, options) ?? [Buffer.from(rowJson(served, entry, options))];
    return first ? bytes : [comma, ...bytes];
  };
  const head = Buffer.from(tableHead(metadata, options, served.definition.table));
  return { head, body: ownBody(result.entries, row), tail: endOfList };
}

function writeTable(call: Call, status: number, metadata: ListMeta, entries: readonly Entry[], output: Output): Promise<void> {
  const { ctx, served } = call;
  const json = tableJson(served, metadata, entries, tableOptions(call, output), served.definition.table);
  if (output.mediaType === yamlType) return send(ctx, status, yamlType, toYaml(parseJson(json)));
  return sendJson(ctx, status, Buffer.from(json), output.indent);
}

/** @throws BadRequest. */
export function tableOptions(call: Call, output: Output): TableOptions {
  return {
    includeObject: includeObjectParam(call.ctx.query),
    metaVersion: output.version ?? "v1",
    now: call.env.services.now(),
  };
}

function writeMeta(ctx: RequestContext, status: number, object: KubeObject, output: Output): Promise<void> {
  const kind = { ...metaGroupVersion(object), kind: object.kind ?? "" };
  if (output.mediaType === yamlType) return send(ctx, status, yamlType, encodeObject(object, yamlType));
  if (output.mediaType === protobufType) return send(ctx, status, protobufType, encodeProtobuf(object, kind));
  return sendJson(ctx, status, encodeJson(object, kind), output.indent);
}

function metaGroupVersion(object: KubeObject): { group: string; version: string } {
  return parseGroupVersion(object.apiVersion ?? "") ?? { group: "meta.k8s.io", version: "v1" };
}

function sendJson(ctx: RequestContext, status: number, json: Buffer, indent: boolean): Promise<void> {
  // Indented JSON ends without a newline, plain JSON with one; so do upstream's two encoders.
  const body = indent ? Buffer.from(indentJson(json.toString().trimEnd())) : Buffer.concat([json, newline]);
  return send(ctx, status, jsonType, body);
}

const newline = Buffer.from("\n");

/** One whole body, compressed when the client takes that and it is long enough. */
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

export function acceptsGzip(header: string | string[] | undefined): boolean {
  const text = Array.isArray(header) ? header.join(",") : (header ?? "");
  return text.split(",").some((encoding) => encoding.trim().split(";")[0] === "gzip");
}

/**
 * Answers with the Status of an error, in the encoding the client asked for (JSON when that cannot be told), with
 * Retry-After where the error has one. After headers were sent it can only break the connection.
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

export function encodeStatus(status: Status, mediaType: string, indent: boolean): Buffer {
  const object = { ...status, kind: "Status", apiVersion: "v1" } as KubeObject;
  if (mediaType === protobufType) return encodeProtobuf(object, statusKind);
  if (mediaType === yamlType) return encodeObject(object, yamlType);
  const json = encodeJson(object, statusKind);
  return indent ? Buffer.from(indentJson(json.toString().trimEnd())) : Buffer.concat([json, newline]);
}

function errorOutput(exchange: Exchange, ctx: RequestContext | undefined): { mediaType: string; indent: boolean } {
  const query = ctx?.query ?? new URLSearchParams(exchange.url.split("?")[1] ?? "");
  const indent = wantsIndent(query, exchange.headers["user-agent"]);
  try {
    const { mediaType } = negotiateOutput(exchange.headers.accept, { transforms: true });
    return { mediaType, indent };
  } catch {
    return { mediaType: jsonType, indent };
  }
}
