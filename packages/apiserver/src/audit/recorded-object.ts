/**
 * Objects of requests and answers as events hold them: one line of JSON, escaped as Go's encoder escapes, without managed fields where
 * the policy says so. Small ones are converted at once, large ones in a worker thread, so that no list blocks the event loop.
 * Source: k8s.io/apiserver pkg/audit/request.go, LogRequestObject, LogResponseObject
 */
import { extname } from "node:path";
import { gunzipSync } from "node:zlib";
import { encodeJson, encodeUntyped, parseJson } from "@coxswain/apimachinery/codec/json";
import { decodeProtobuf } from "@coxswain/apimachinery/codec/protobuf";
import { parseYaml } from "@coxswain/apimachinery/codec/yaml";
import { newWorkerQueue } from "@coxswain/apimachinery/event-loop/worker-queue";

/** An object as it was sent. */
export interface SentObject {
  readonly source: "request" | "patch" | "answer";
  /** Of an answer; requests are JSON of ours, patches what the user wrote. */
  readonly mediaType: string;
  readonly gzip: boolean;
  readonly bytes: Uint8Array;
  readonly omitManagedFields: boolean;
  /** Without it, an answer that is no Status is not recorded. */
  readonly recordsObject: boolean;
}

export interface RecordedObject {
  /** undefined: there is no object to record */
  readonly json?: Uint8Array;
  /** When the answer was a Status. */
  readonly status?: { readonly status?: string; readonly reason?: string };
}

/** Converts objects, and limits what events hold in memory until they are written. */
export interface ObjectRecorder {
  /** Of one object, before and after decompression. */
  readonly maxObjectBytes: number;
  /** @returns false when events hold too much already; then the object is left out and the event is marked as truncated */
  reserve(bytes: number): boolean;
  release(bytes: number): void;
  /** @returns at once for small objects @throws Error when the object is too large or cannot be decoded */
  convert(sent: SentObject): RecordedObject | Promise<RecordedObject>;
}

export interface ObjectRecorderOptions {
  readonly maxObjectBytes?: number;
  readonly maxHeldBytes?: number;
}

/** Larger bodies take more than a few milliseconds to convert. */
const inlineBytes = 64 * 1024;
const defaultMaxObjectBytes = 64 * 1024 * 1024;
const defaultMaxHeldBytes = 128 * 1024 * 1024;

export function newObjectRecorder(options: ObjectRecorderOptions = {}): ObjectRecorder {
  const { maxObjectBytes = defaultMaxObjectBytes, maxHeldBytes = defaultMaxHeldBytes } = options;
  const thread = newWorkerQueue<SentObject & { readonly maxBytes: number }, RecordedObject | { readonly failure: string }>({
    file: new URL(`./recorded-object-thread${extname(import.meta.url)}`, import.meta.url),
    heapMb: 1024,
    timeoutMs: 60_000,
    idleMs: 10_000,
  });
  let heldBytes = 0;
  return {
    maxObjectBytes,
    reserve(bytes) {
      if (heldBytes + bytes > maxHeldBytes) return false;
      heldBytes += bytes;
      return true;
    },
    release(bytes) {
      heldBytes -= bytes;
    },
    convert(sent) {
      if (sent.bytes.length <= inlineBytes) return recordedObject(sent, maxObjectBytes);
      // The thread gets memory of its own: bodies are views of buffers that lists share.
      const bytes = new Uint8Array(sent.bytes);
      return thread.run({ ...sent, bytes, maxBytes: maxObjectBytes }, [bytes.buffer]).then((answer) => {
        if ("failure" in answer) throw new Error(answer.failure);
        return answer;
      });
    },
  };
}

/** @throws Error for bytes that cannot be decoded, or are more than `maxBytes` decompressed */
export function recordedObject(sent: SentObject, maxBytes: number): RecordedObject {
  const { source, mediaType, omitManagedFields, recordsObject } = sent;
  const whole = Buffer.from(sent.bytes.buffer, sent.bytes.byteOffset, sent.bytes.byteLength);
  const bytes = sent.gzip ? gunzipSync(whole, { maxOutputLength: maxBytes }) : whole;
  if (source === "patch") return ofText(compactJson(bytes.toString("utf8")));
  if (source === "request") return ofText(embedded(bytes.toString("utf8"), omitManagedFields));
  const isAStatus = isStatus(mediaType, bytes);
  if (!isAStatus && !recordsObject) return {};
  const json = objectJson(mediaType, bytes);
  if (json === undefined) return {};
  const recorded = recordsObject ? ofText(embedded(json, omitManagedFields)) : {};
  if (!isAStatus) return recorded;
  const { status, reason } = JSON.parse(json) as { status?: string; reason?: string };
  return { ...recorded, status: { ...(status && { status }), ...(reason && { reason }) } };
}

function ofText(json: string | undefined): RecordedObject {
  return json === undefined ? {} : { json: Buffer.from(escapeHtml(json)) };
}

/** As Go's encoder writes strings. None of these characters stands outside of one. */
export function escapeHtml(json: string): string {
  return json.replace(/[<>&\u2028\u2029]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function embedded(json: string, omitManagedFields: boolean): string {
  const text = json.trimEnd();
  if (!omitManagedFields || !text.includes('"managedFields"')) return text;
  return encodeUntyped(withoutManagedFields(parseJson(text)))
    .toString()
    .trimEnd();
}

const jsonType = "application/json";
const yamlType = "application/yaml";
const protobufType = "application/vnd.kubernetes.protobuf";

/** Told from the first bytes: most answers are no Status, and need not be parsed to know it. */
function isStatus(mediaType: string, bytes: Buffer): boolean {
  const start = bytes.subarray(0, 64).toString("latin1");
  if (mediaType === jsonType) return /^\{\s*"kind":\s*"Status"/.test(start);
  if (mediaType === protobufType) return start.startsWith("k8s\0") && start.includes("\x12\x06Status");
  return mediaType === yamlType && bytes.toString("utf8").includes("kind: Status\n");
}

/** An API object on one line of JSON; undefined for a document of another kind. */
function objectJson(mediaType: string, bytes: Buffer): string | undefined {
  let json: string | undefined;
  if (mediaType === jsonType) json = compactJson(bytes.toString("utf8"));
  else if (mediaType === yamlType) json = compactJson(encodeUntyped(parseYaml(bytes.toString("utf8"))).toString());
  else if (mediaType === protobufType) json = encodeJson(decodeProtobuf(bytes)).toString().trimEnd();
  return json !== undefined && /^\{"(kind|apiVersion)":/.test(json) ? json : undefined;
}

/** A user's JSON on one line with its own order of keys; YAML becomes JSON; undefined when it is neither. */
function compactJson(text: string): string | undefined {
  try {
    parseJson(text);
    return text.replace(/("(?:[^"\\]|\\.)*")|\s+/g, "$1");
  } catch {
    try {
      return encodeUntyped(parseYaml(text)).toString().trimEnd();
    } catch {
      return undefined;
    }
  }
}

/** Of an object, of a list's items, and of the objects in a table's rows. Changes its argument. */
function withoutManagedFields(value: unknown): unknown {
  const drop = (object: unknown): void => {
    const metadata = (object as { metadata?: { managedFields?: unknown } } | null)?.metadata;
    if (typeof metadata === "object" && metadata !== null) delete metadata.managedFields;
  };
  drop(value);
  const { items, rows } = (value ?? {}) as { items?: unknown; rows?: unknown };
  if (Array.isArray(items)) for (const item of items) drop(item);
  if (Array.isArray(rows)) for (const row of rows) drop((row as { object?: unknown } | null)?.object);
  return value;
}
