/** Responds with lists in all forms, with backpressure and yielding to the event loop, from the bytes cached with the entries. */
import { createGzip } from "node:zlib";
import { encodeJsonText } from "@coxswain/apimachinery/objects/codec/json";
import { protobufMediaType, yamlMediaType } from "@coxswain/apimachinery/objects/codec/negotiate";
import { formatGroupVersion, type GroupVersionKind } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject, ListMeta } from "@coxswain/apimachinery/objects/meta/types";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { ResponseStream } from "@coxswain/apimachinery/serving/exchange";
import type { Entry, ListResult } from "../storage/storage.ts";
import { itemPrefix, jsonOf, slotOf } from "./convert.ts";
import type { Call } from "./env.ts";
import {
  fieldHead,
  type ItemBytes,
  type ListBody,
  ownBody,
  type ProtobufItems,
  protobufBytes,
  protobufItems,
  protobufMetadataItems,
  protobufSize,
  varint,
} from "./list-body.ts";
import type { Output } from "./negotiation.ts";
import { acceptsGzip, gzipLevel, linkedList, send, tableOptions } from "./response.ts";
import type { ServedResource } from "./served-resources.ts";
import { keepingRow, rowBytes, rowSlot } from "./table-row.ts";
import { type TextForm, type TextList, textList, yamlItemInSteps } from "./text-list.ts";
import { listRequestedAsObject, partialMetadata, rowJson, tableHead } from "./transform.ts";

/** Responds with a list in the request's version. */
export async function writeList(call: Call, found: ListResult, output: Output): Promise<void> {
  const result = { ...found, ...linkedList(call, found.entries) };
  return writeParts(call, output.mediaType, await listParts(call, result, output));
}

/** A list result, with the list's self link when enabled. */
type LinkedResult = ListResult & { readonly selfLink?: string };

/** A list split around its items. */
interface ListParts {
  readonly head: Buffer;
  readonly body: ListBody;
  readonly tail: Buffer;
  /** The complete list without items, when it differs from head and tail. */
  readonly empty?: Buffer;
  /** Length of the complete list, when known. */
  readonly sizeBytes?: number;
}

async function listParts(call: Call, result: LinkedResult, output: Output): Promise<ListParts> {
  const { served } = call;
  const { listBodies, services } = call.env;
  const { turns } = services;
  const { entries } = result;
  switch (output.as) {
    case "Table":
      return await tableList(call, result, output);
    case "PartialObjectMetadataList": {
      const kind = { group: "meta.k8s.io", version: output.version ?? "v1", kind: "PartialObjectMetadata" };
      const list = { ...kind, kind: output.as };
      if (output.mediaType === protobufMediaType) return protobufList(turns, list, result, protobufMetadataItems(kind));
      // Unlike items of other lists, these have kind and apiVersion.
      const item = (object: KubeObject): Buffer => Buffer.from(encodeJsonText(partialMetadata(object, kind.version), kind));
      const slot = `metadata:${kind.version}`;
      const asItem = (entry: Entry): Buffer => entry.kept(slot, item);
      const frame = textList(formOf(output), emptyList(list, result), asItem);
      const isYaml = output.mediaType === yamlMediaType;
      return { ...frame, body: ownBody(entries, isYaml ? await yamlItems(turns, entries, slot, asItem, frame) : frame.bytesOf) };
    }
    case "PartialObjectMetadata":
      throw listRequestedAsObject(served.definition);
  }
  const kind = { ...served.kind, kind: served.definition.listKind };
  if (output.mediaType === protobufMediaType) {
    const items = protobufItems(served);
    return protobufList(turns, kind, result, items, listBodies.protobuf(entries, served, items));
  }
  const form = formOf(output);
  const asItem = (entry: Entry): Buffer => itemOf(entry, served);
  const frame = textList(form, emptyList(kind, result, served.definition.custom), asItem);
  if (form === "compact") return { ...frame, body: listBodies.json(entries, served) };
  const isYaml = form === "yaml";
  return {
    ...frame,
    body: ownBody(entries, isYaml ? await yamlItems(turns, entries, slotOf(served), asItem, frame) : frame.bytesOf),
  };
}

/** The items of a YAML list; large ones are encoded ahead, in turns. @param of names what `asItem` makes of an entry */
async function yamlItems(
  turns: Turns,
  entries: readonly Entry[],
  of: string,
  asItem: (entry: Entry) => Buffer,
  frame: TextList,
): Promise<ItemBytes> {
  const slot = `yaml:${of}`;
  for (const entry of entries) {
    if (entry.isLarge) await turns.run(entry.keepInSteps(slot, () => yamlItemInSteps(asItem(entry))));
  }
  return (entry, first) =>
    entry.isLarge ? [entry.kept(slot, () => atOnce(yamlItemInSteps(asItem(entry))))] : frame.bytesOf(entry, first);
}

function formOf({ mediaType, indent }: Output): TextForm {
  return mediaType === yamlMediaType ? "yaml" : indent ? "indented" : "compact";
}

/** @param custom lists of custom resources are unstructured upstream, which does not omit empty fields */
function emptyList(kind: GroupVersionKind, result: LinkedResult, custom = false): string {
  const metadata = { ...(custom && { continue: "" }), ...listMeta(result) };
  return (
    `{"kind":${JSON.stringify(kind.kind)},"apiVersion":${JSON.stringify(formatGroupVersion(kind))},` +
    `"metadata":${JSON.stringify(metadata)},"items":[]}`
  );
}

/** Built-in items are listed without kind and apiVersion. */
function itemOf(entry: Entry, served: ServedResource): Buffer {
  const prefix = itemPrefix(served);
  const json = jsonOf(entry, served);
  const leaves = prefix.length > 0 && json.subarray(0, prefix.length).equals(prefix);
  return leaves ? Buffer.concat([openBrace, json.subarray(prefix.length)]) : json;
}

const openBrace = Buffer.from("{");

/** Ages in rows have a resolution of seconds, so responses within the same second share the rows. */
async function tableList(call: Call, result: LinkedResult, output: Output): Promise<ListParts> {
  const { served } = call;
  const options = tableOptions(call, output);
  const { order } = served.definition.table;
  const entries = order === undefined ? result.entries : result.entries.toSorted((a, b) => order(a.object(), b.object()));
  const slot = rowSlot(served, options);
  const { turns } = call.env.services;
  for (const entry of entries) if (entry.isLarge && slot !== undefined) await turns.run(keepingRow(slot, served, entry, options));
  const row = (entry: Entry): readonly Uint8Array[] =>
    (slot === undefined ? undefined : rowBytes(slot, served, entry, options)) ?? [Buffer.from(rowJson(served, entry, options))];
  const form = formOf(output);
  const head = `${tableHead(listMeta(result), options, served.definition.table)}]}`;
  const frame = textList(form, head, (entry) => Buffer.concat(row(entry)));
  // A row contains ages, so that its YAML cannot be kept; JSON is YAML as well.
  const rowOf: ItemBytes = (entry, first) =>
    form === "yaml" && entry.isLarge ? [dash, ...row(entry), newline] : frame.bytesOf(entry, first);
  if (slot === undefined || form !== "compact") return { ...frame, body: ownBody(entries, rowOf) };
  const rows: ItemBytes = (entry, first) => (first ? row(entry) : [comma, ...row(entry)]);
  return { ...frame, body: call.env.listBodies.shared(entries, slot, () => rows, Math.floor(options.now / 1000)) };
}

const comma = Buffer.from(",");
const dash = Buffer.from("- ");
const newline = Buffer.from("\n");

function listMeta(result: LinkedResult): ListMeta {
  const { selfLink } = result;
  const metadata: ListMeta = { ...(selfLink !== undefined && { selfLink }), resourceVersion: String(result.revision) };
  if (result.continueToken !== undefined && result.continueToken !== "") metadata.continue = result.continueToken;
  if (result.remainingItemCount !== undefined) metadata.remainingItemCount = result.remainingItemCount;
  return metadata;
}

/** Items of a piece of work: most are encoded already, and yielding after each would cost more than writing it. */
const itemsPerPiece = 16;

/** `XList { ListMeta metadata = 1; repeated X items = 2; }` in the envelope, with the items' cached bytes. */
async function protobufList(
  turns: Turns,
  kind: GroupVersionKind,
  result: LinkedResult,
  items: ProtobufItems,
  body = ownBody(result.entries, protobufBytes(items)),
): Promise<ListParts> {
  const metadata = protobufListMeta(listMeta(result));
  const metadataHead = fieldHead(1, metadata.length);
  // The length precedes the first item, so all items have to be encoded before the first byte is sent.
  let messageBytes = metadataHead.length + metadata.length;
  for (const [index, entry] of result.entries.entries()) {
    const turn = index % itemsPerPiece === 0 ? turns.next() : undefined;
    if (turn !== undefined) await turn;
    if (entry.isLarge) await turns.run(entry.keepInSteps(items.slot, items.makeInSteps));
    messageBytes += protobufSize(items, entry);
  }
  const typeMeta = protobufTypeMeta(formatGroupVersion(kind), kind.kind);
  const envelope = [magic, fieldHead(1, typeMeta.length), typeMeta, fieldHead(2, messageBytes)];
  const head = Buffer.concat([...envelope, metadataHead, metadata]);
  const tail = Buffer.concat([fieldHead(3, 0), fieldHead(4, 0)]);
  const sizeBytes = head.length - metadataHead.length - metadata.length + messageBytes + tail.length;
  return { head, body, tail, sizeBytes };
}

const magic = Buffer.from("k8s\0", "latin1");

function protobufTypeMeta(apiVersion: string, kind: string): Buffer {
  return Buffer.concat([stringField(1, apiVersion), stringField(2, kind)]);
}

function protobufListMeta(metadata: ListMeta): Buffer {
  const parts = [
    stringField(1, metadata.selfLink ?? ""),
    stringField(2, metadata.resourceVersion ?? ""),
    stringField(3, metadata.continue ?? ""),
  ];
  if (metadata.remainingItemCount !== undefined) parts.push(Buffer.from([4 << 3]), varint(metadata.remainingItemCount));
  return Buffer.concat(parts);
}

function stringField(field: number, value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([fieldHead(field, bytes.length), bytes]);
}

/** Writes a list chunk by chunk, at most one chunk ahead of the client, and yields to the event loop. */
async function writeParts({ ctx, env }: Call, mediaType: string, list: ListParts): Promise<void> {
  const { turns } = env.services;
  const { exchange } = ctx;
  const { head, body, tail, empty, sizeBytes } = list;
  const turn = turns.next();
  if (turn !== undefined) await turn;
  let chunk = body.chunk(0);
  if (chunk === undefined) return send(ctx, 200, mediaType, empty ?? Buffer.concat([head, tail]));
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
    turns.transferred(chunk.length);
    if (full !== undefined) await full;
    const turn = turns.next();
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
      if (!response.write(chunk as Buffer)) await response.drained(); // cast: zlib's streams yield Buffers
    }
    response.end();
  })();
  done.catch(giveUp);
  compressor.on("drain", () => waiting?.resolve());
  compressor.once("close", () => waiting?.reject(new Error("the client disconnected during a list")));
  signal.addEventListener("abort", giveUp, { once: true });
  return {
    write: (chunk) =>
      compressor.write(chunk)
        ? undefined
        : new Promise<void>((resolve, reject) => {
            waiting = { resolve, reject };
            if (compressor.destroyed) reject(new Error("the client disconnected during a list"));
          }),
    async end() {
      compressor.end();
      await done;
      signal.removeEventListener("abort", giveUp);
    },
  };
}
