import type { Turns } from "../../../process/event-loop/turns.ts";
import { protocolError, tooMuch } from "../wire/connection-error.ts";
import { FrameInput, type FrameReceiver, type PartialHeaderBlock, preface } from "../wire/frames.ts";
import { type DecodedFields, type FieldsDecoder, newFieldsDecoder } from "../wire/hpack.ts";

/** Handles a client's frames. Each method may throw a ConnectionError, which ends the connection. */
export interface ServerFrameReceiver extends FrameReceiver {
  /** A complete header block. @param isWhole END_STREAM was set: no body follows */
  onHeaders(stream: number, isWhole: boolean, decoded: DecodedFields): void;
  /** The connections hold too many incomplete header blocks, and this one's is the oldest. */
  onStalledHeaders(): void;
}

/** Input of a server's connection: the client's preface, then its frames. Source: RFC 9113, section 3.4 */
export class ServerInput extends FrameInput<HeaderBlock> {
  readonly #receiver: ServerFrameReceiver;
  readonly #maxHeaderBytes: number;
  readonly #memory: HeaderMemory;
  readonly #decoder: FieldsDecoder;
  /** The part of the preface that was not received yet. */
  #prefaceLeft = preface;

  constructor(receiver: ServerFrameReceiver, maxHeaderBytes: number, memory: HeaderMemory) {
    super(receiver);
    this.#receiver = receiver;
    this.#memory = memory;
    this.#maxHeaderBytes = maxHeaderBytes;
    this.#decoder = newFieldsDecoder({ mostListBytes: maxHeaderBytes });
  }

  /** Start time of the incomplete header block, as `performance.now()`; undefined without one. */
  get headersSince(): number | undefined {
    return this.partialBlock?.since;
  }

  protected override afterPreface(chunk: Buffer): Buffer {
    if (this.#prefaceLeft.length === 0) return chunk;
    const length = Math.min(chunk.length, this.#prefaceLeft.length);
    if (chunk.compare(this.#prefaceLeft, 0, length, 0, length) !== 0) throw protocolError("invalid connection preface");
    this.#prefaceLeft = this.#prefaceLeft.subarray(length);
    return chunk.subarray(length);
  }

  protected override newBlock(stream: number, flag: number): HeaderBlock {
    checkClientStream(stream);
    // A moderately oversized block is decoded, so that the request is answered with 431.
    const onTooMany = (): void => this.#receiver.onStalledHeaders();
    return new HeaderBlock(stream, flag, 2 * this.#maxHeaderBytes, this.#memory, onTooMany);
  }

  protected override onHeaderBlock(stream: number, ends: boolean, block: Buffer): void {
    checkClientStream(stream);
    // Decoded even when the stream is refused: every block updates the dynamic table.
    this.#receiver.onHeaders(stream, ends, this.#decoder.decode(block));
  }
}

function checkClientStream(stream: number): void {
  if (stream % 2 === 0) throw protocolError("even stream ID from the client");
}

/**
 * Validation of request header fields, as Go's server does it: connection-specific fields of a request are answered with 400, where
 * other malformed ones reset the stream; values may begin or end with blanks, which RFC 9113 forbids, since Go's clients send them.
 * Source: RFC 9113, section 8; golang.org/x/net http/httpguts, ValidHeaderFieldValue; http2, checkValidHTTP2RequestHeaders
 */

export interface RequestHead {
  readonly method: string;
  /** Path and query, `/api/v1/pods?limit=5`, or `*` (OPTIONS only). */
  readonly path: string;
  readonly authority: string | undefined;
  /** Value of `content-length`, in bytes; undefined without one. */
  readonly contentLength: number | undefined;
  /** Why the request must be answered with 400: it has a connection-specific field of HTTP/1.1. */
  readonly refusal?: string;
}

/** Connection-specific fields, which HTTP/2 forbids (RFC 9113, 8.2.2). */
export const connectionFields: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "transfer-encoding",
  "upgrade",
]);

const pseudoFields: readonly string[] = [":method", ":path", ":scheme", ":authority"];
const colon = 58;

/**
 * @param fields name, value, name, value …
 * @returns for a malformed request what is wrong with it
 */
export function requestHeadOf(fields: readonly string[]): RequestHead | string {
  const pseudo: (string | undefined)[] = [undefined, undefined, undefined, undefined];
  let at = 0;
  for (; at < fields.length; at += 2) {
    const name = fields[at]!;
    if (name.charCodeAt(0) !== colon) break;
    const which = pseudoFields.indexOf(name);
    if (which === -1) return "unknown pseudo-header field";
    if (pseudo[which] !== undefined) return `duplicate ${name}`;
    if (!isValue(fields[at + 1]!)) return `invalid value of ${name}`;
    pseudo[which] = fields[at + 1];
  }
  const [method, path, scheme, authority] = pseudo;
  if (method === undefined || path === undefined || scheme === undefined) return "missing pseudo-header field";
  if (method === "CONNECT") return "CONNECT with :path";
  if (scheme !== "https" && scheme !== "http") return "invalid value of :scheme";
  if (!isToken(method)) return "invalid value of :method";
  if (!(path.charCodeAt(0) === 47 /* / */ || (path === "*" && method === "OPTIONS"))) return "invalid value of :path";
  const fault = faultOf(fields, at);
  if (fault !== undefined) return fault;
  const contentLength = announcedLength(fields, at);
  if (contentLength === null) return "invalid content-length";
  const refusal = connectionFault(fields, at);
  return refusal === undefined ? { method, path, authority, contentLength } : { method, path, authority, contentLength, refusal };
}

/** @returns whether the fields are valid as trailers */
export function areTrailers(fields: readonly string[]): boolean {
  return faultOf(fields, 0) === undefined && connectionFault(fields, 0) === undefined;
}

/** @returns the error text for fields that are connection-specific in HTTP/1.1, as in Go's server */
function connectionFault(fields: readonly string[], from: number): string | undefined {
  let transferCodings: string | undefined;
  for (let at = from; at < fields.length; at += 2) {
    const name = fields[at]!;
    if (connectionFields.has(name)) return `request header "${canonical(name)}" is not valid in HTTP/2`;
    if (name !== "te") continue;
    if (transferCodings !== undefined || !["trailers", ""].includes(fields[at + 1]!))
      return 'request header "TE" may only be "trailers" in HTTP/2';
    transferCodings = fields[at + 1];
  }
  return undefined;
}

/** `Transfer-Encoding` for `transfer-encoding`. */
const canonical = (name: string): string => name.replace(/(?<=^|-)[a-z]/g, (letter) => letter.toUpperCase());

/** @returns what is wrong with the first malformed field */
function faultOf(fields: readonly string[], from: number): string | undefined {
  for (let at = from; at < fields.length; at += 2) {
    const name = fields[at]!;
    const value = fields[at + 1]!;
    if (!isName(name)) return "invalid header field name";
    if (!isValue(value)) return `invalid value of ${name}`;
  }
  return undefined;
}

/** @returns null when the value is not a number, or when two values differ */
function announcedLength(fields: readonly string[], from: number): number | undefined | null {
  let text: string | undefined;
  for (let at = from; at < fields.length; at += 2) {
    if (fields[at] !== "content-length") continue;
    if (text !== undefined && text !== fields[at + 1]) return null;
    text = fields[at + 1];
  }
  if (text === undefined) return undefined;
  return /^[0-9]{1,15}$/.test(text) ? Number(text) : null;
}

/** Indexed by octet: 1 for token characters without upper-case letters (RFC 9110, 5.6.2; RFC 9113, 8.2.1). */
const nameOctets = new Uint8Array(256);
for (const character of "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz") nameOctets[character.charCodeAt(0)] = 1;

/** A pure, bounded cache of validated names. */
const knownNames = new Set<string>();
const mostKnownNames = 500;

function isName(name: string): boolean {
  if (knownNames.has(name)) return true;
  if (name === "") return false;
  for (let i = 0; i < name.length; i++) if (nameOctets[name.charCodeAt(i)] !== 1) return false;
  if (knownNames.size < mostKnownNames && name.length <= 64) knownNames.add(name);
  return true;
}

/** Control characters other than the tab. */
const forbiddenInValue = /[\x00-\x08\x0a-\x1f\x7f]/;

function isValue(value: string): boolean {
  return !forbiddenInValue.test(value);
}

function isToken(method: string): boolean {
  return /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(method);
}

const mostParts = 500;

/** The incomplete header blocks of all connections that share it, oldest first. */
export class HeaderMemory {
  /** Clients are not authenticated before their headers are complete. */
  readonly limitBytes = 64 * 1024 * 1024;
  readonly #blocks = new Set<HeaderBlock>();
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  open(block: HeaderBlock): void {
    this.#blocks.add(block);
  }

  add(bytes: number): void {
    this.#bytes += bytes;
  }

  /** Drops the oldest blocks until the rest is within the limit. */
  limit(): void {
    for (const block of this.#blocks) {
      if (this.#bytes <= this.limitBytes) return;
      block.dropForOthers();
    }
  }

  /** @returns false when the block was released already */
  release(block: HeaderBlock, bytes: number): boolean {
    const isHeld = this.#blocks.delete(block);
    if (isHeld) this.#bytes -= bytes;
    return isHeld;
  }
}

/** A header block that arrives as HEADERS and CONTINUATION frames. */
export class HeaderBlock implements PartialHeaderBlock {
  readonly stream: number;
  readonly flags: number;
  readonly since = performance.now();
  readonly #mostBytes: number;
  readonly #memory: HeaderMemory;
  readonly #onTooMany: () => void;
  #parts: Buffer[] = [];
  #size = 0;

  /** @param onTooMany called when the memory's limit is exceeded and this block is the oldest; its connection has to close */
  constructor(stream: number, flags: number, mostBytes: number, memory: HeaderMemory, onTooMany: () => void) {
    this.stream = stream;
    this.flags = flags;
    this.#mostBytes = mostBytes;
    this.#memory = memory;
    this.#onTooMany = onTooMany;
    memory.open(this);
  }

  add(part: Buffer): void {
    this.#parts.push(part);
    this.#size += part.length;
    this.#memory.add(part.length);
    if (this.#parts.length > mostParts || this.#size > this.#mostBytes) throw tooMuch("header block exceeds the limits");
    this.#memory.limit();
  }

  take(): Buffer {
    const bytes = Buffer.concat(this.#parts, this.#size);
    this.drop();
    return bytes;
  }

  /** Discards the block and releases its share of the memory. Idempotent. */
  drop(): void {
    if (!this.#memory.release(this, this.#size)) return;
    this.#parts = [];
    this.#size = 0;
  }

  dropForOthers(): void {
    this.drop();
    this.#onTooMany();
  }
}

/** Header fields whose decoding takes a whole slice: a few milliseconds of work. */
const fieldsPerSlice = 20_000;

/** Accounts decoded header fields. Two octets on the wire may decode to one field, and the client is not authenticated yet. */
export class FieldWork {
  readonly #turns: Turns;

  constructor(turns: Turns) {
    this.#turns = turns;
  }

  add(count: number): void {
    this.#turns.charge(count / fieldsPerSlice);
  }

  /** @returns a promise to await before decoding more; undefined while the fields of this iteration have not used up its slice */
  wait(): Promise<void> | undefined {
    return this.#turns.isCharged ? this.#turns.next() : undefined;
  }
}
