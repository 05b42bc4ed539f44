/**
 * Converts request and response objects to the form in audit events: one line of JSON, escaped like Go's encoder, without
 * managed fields if the policy omits them. Large objects are converted in a worker thread to keep the event loop responsive.
 * Source: k8s.io/apiserver pkg/audit/request.go, LogRequestObject, LogResponseObject
 */
import { extname } from "node:path";
import { gunzipSync } from "node:zlib";
import { encodeJson, encodeUntyped, parseJson } from "@coxswain/apimachinery/objects/codec/json";
import { decodeProtobuf } from "@coxswain/apimachinery/objects/codec/protobuf";
import { parseYaml } from "@coxswain/apimachinery/objects/codec/yaml";
import { newWorkerQueue } from "@coxswain/apimachinery/process/event-loop/worker-queue";

/** An object as sent on the wire. */
export interface SentObject {
  readonly source: "request" | "patch" | "answer";
  /** Media type of a response; requests are JSON made by the server, patches are as sent by the user. */
  readonly mediaType: string;
  readonly gzip: boolean;
  readonly bytes: Uint8Array;
  readonly omitManagedFields: boolean;
  /** When false, only a Status in the response is recorded. */
  readonly recordsObject: boolean;
}

export interface RecordedObject {
  /** undefined when there is no object to record */
  readonly json?: Uint8Array;
  /** Set when the response is a Status. */
  readonly status?: { readonly status?: string; readonly reason?: string };
}

/** Converts objects and limits the memory held by events until they are written. */
export interface ObjectRecorder {
  /** Limit for one object, before and after decompression. */
  readonly maxObjectBytes: number;
  /** @returns false when the limit is exceeded; the object is then omitted and the event marked as truncated */
  reserve(bytes: number): boolean;
  release(bytes: number): void;
  /** @returns synchronously for small objects @throws Error when the object is too large or cannot be decoded */
  convert(sent: SentObject): RecordedObject | Promise<RecordedObject>;
}

interface ObjectRecorderOptions {
  readonly maxObjectBytes?: number;
  readonly maxHeldBytes?: number;
}

/** Bodies above this size are converted in the worker, as they take more than a few milliseconds. */
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
      // Copied to be transferable: bodies are views of buffers shared with list responses.
      const bytes = new Uint8Array(sent.bytes);
      return thread.run({ ...sent, bytes, maxBytes: maxObjectBytes }, [bytes.buffer]).then((answer) => {
        if ("failure" in answer) throw new Error(answer.failure);
        return answer;
      });
    },
  };
}

/** @throws Error when the bytes cannot be decoded or exceed `maxBytes` after decompression */
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
  const { status, reason } = JSON.parse(json) as { status?: string; reason?: string }; // cast: this server's own Status
  return { ...recorded, status: { ...(status && { status }), ...(reason && { reason }) } };
}

function ofText(json: string | undefined): RecordedObject {
  return json === undefined ? {} : { json: Buffer.from(escapeHtml(json)) };
}

/** Escapes like Go's JSON encoder. These characters occur only inside JSON strings. */
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

/** Detects a Status by its first bytes, which avoids parsing other responses. */
function isStatus(mediaType: string, bytes: Buffer): boolean {
  const start = bytes.subarray(0, 64).toString("latin1");
  if (mediaType === jsonType) return /^\{\s*"kind":\s*"Status"/.test(start);
  if (mediaType === protobufType) return start.startsWith("k8s\0") && start.includes("\x12\x06Status");
  return mediaType === yamlType && bytes.toString("utf8").includes("kind: Status\n");
}

/** An API object as one line of JSON; undefined for other documents. */
function objectJson(mediaType: string, bytes: Buffer): string | undefined {
  let json: string | undefined;
  if (mediaType === jsonType) json = compactJson(bytes.toString("utf8"));
  else if (mediaType === yamlType) json = compactJson(encodeUntyped(parseYaml(bytes.toString("utf8"))).toString());
  else if (mediaType === protobufType) json = encodeJson(decodeProtobuf(bytes)).toString().trimEnd();
  return json !== undefined && /^\{"(kind|apiVersion)":/.test(json) ? json : undefined;
}

/** The user's JSON on one line with the original key order; YAML is converted; undefined when it is neither. */
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

/** Removes managedFields from an object, list items, and objects in table rows. Modifies its argument. */
function withoutManagedFields(value: unknown): unknown {
  const drop = (object: unknown): void => {
    const metadata = (object as { metadata?: { managedFields?: unknown } } | null)?.metadata; // cast: read if it is there
    if (typeof metadata === "object" && metadata !== null) delete metadata.managedFields;
  };
  drop(value);
  const { items, rows }: { items?: unknown; rows?: unknown } = value ?? {};
  if (Array.isArray(items)) for (const item of items) drop(item);
  // Cast: read if it is there.
  if (Array.isArray(rows)) for (const row of rows) drop((row as { object?: unknown } | null)?.object);
  return value;
}
