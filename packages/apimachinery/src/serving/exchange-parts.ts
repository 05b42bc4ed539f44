import type { IncomingHttpHeaders, OutgoingHttpHeader, OutgoingHttpHeaders } from "node:http";
import type { Writable } from "node:stream";
import { validateHeaderName } from "../transport/node-http.ts";
import type { ResponseStream } from "./exchange.ts";

type HeaderValue = string | number | string[];

type Header = [name: string, value: HeaderValue];

/** Headers that filters set before the response is known. Names are in lower case. A list, because there are few. */
class ResponseHeaders {
  readonly #headers: Header[] = [];

  set(name: string, value: string | string[]): void {
    put(this.#headers, name.toLowerCase(), value);
  }

  append(name: string, value: string): void {
    const key = name.toLowerCase();
    const before = this.#headers.find((header) => header[0] === key);
    if (before === undefined) this.#headers.push([key, value]);
    else before[1] = [...(Array.isArray(before[1]) ? before[1] : [String(before[1])]), value];
  }

  /** These headers and those of the response, which win. */
  merged(own: OutgoingHttpHeaders): Iterable<Header> {
    const all = this.#headers.slice();
    for (const name in own) {
      const value: OutgoingHttpHeader | undefined = own[name];
      if (value !== undefined) put(all, name.toLowerCase(), value);
    }
    return all;
  }
}

function put(headers: Header[], name: string, value: HeaderValue): void {
  for (let index = 0; index < headers.length; index++) {
    if (headers[index]?.[0] !== name) continue;
    headers[index] = [name, value];
    return;
  }
  headers.push([name, value]);
}

/**
 * Creates an object for request fields by lower-case name. It has no prototype, because clients choose the names. Set
 * `authorization` last: it is deleted after authentication, and deleting any other than the last property turns the object into a
 * dictionary.
 */
export function newRequestFields(): IncomingHttpHeaders {
  // Cast: a function called with `new` returns objects of its prototype.
  return new (RequestFields as unknown as new () => IncomingHttpHeaders)();
}

// `Object.create(null)` creates dictionary-mode objects; these have hidden classes.
function RequestFields(): void {}
RequestFields.prototype = Object.create(null);

/** A pure cache, bounded below: names of proxied responses come from other servers. */
const canonical = new Map<string, string>();

/** `content-type` → `Content-Type`, as Go writes names over HTTP/1.1. @throws TypeError for an invalid name */
export function canonicalHeader(name: string): string {
  let form = canonical.get(name);
  if (form === undefined) {
    validateHeaderName(name);
    form = name.replace(/(^|-)([a-z])/g, (_match, dash: string, letter: string) => dash + letter.toUpperCase());
    if (canonical.size < 1000) canonical.set(name, form);
  }
  return form;
}

/** Whether a response with this status may have a body. */
export function bodyMayFollow(status: number): boolean {
  return status >= 200 && status !== 204 && status !== 304;
}

/** Strips the `::ffff:` prefix of IPv4-mapped addresses on dual-stack sockets. */
export function plainAddress(address: string | undefined): string {
  if (address === undefined) return "";
  return address.startsWith("::ffff:") ? address.slice(7) : address;
}

/** Resolves when the writable accepts more data; rejects when it is closed. */
export function whenDrained(writable: Writable): Promise<void> {
  if (writable.destroyed || writable.closed) return Promise.reject(new Error("the client disconnected"));
  if (!writable.writableNeedDrain) return Promise.resolve();
  return new Promise((resolve, reject) => {
    const onDrain = (): void => {
      writable.off("close", onClose);
      resolve();
    };
    const onClose = (): void => {
      writable.off("drain", onDrain);
      reject(new Error("the client disconnected"));
    };
    writable.once("drain", onDrain);
    writable.once("close", onClose);
  });
}

/** The stream of a response without a body; discards all writes. */
export const nowhere: ResponseStream = { write: () => true, drained: () => Promise.resolve(), end() {} };

/** Error text when the client disconnects before its body is complete. */
export const goneInRequest = "the client disconnected while it sent its request";

/** Cache of the last result: the text is the same for all responses within a second. */
let dateSecond = 0;
let dateText = "";

/** Value of the Date header, computed once a second. */
export function httpDate(): string {
  const second = Math.floor(Date.now() / 1000);
  if (second !== dateSecond) {
    dateSecond = second;
    dateText = new Date(second * 1000).toUTCString();
  }
  return dateText;
}

const clientGone = "the client disconnected";

/** State common to exchanges of all protocols: early headers, client disconnection, index in the server's set. */
export abstract class ExchangeBase {
  bytesWritten = 0;
  place = -1;
  answeredMs: number | undefined;
  onUnread: (() => void) | undefined;
  /** Since when the handler has been waiting for the client to read, as `performance.now()`; undefined when it is not. */
  unreadMs: number | undefined;
  protected readonly answerHeaders = new ResponseHeaders();
  #controller: AbortController | undefined;
  #isGone = false;

  get isGone(): boolean {
    return this.#isGone;
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#isGone && !this.#controller.signal.aborted) this.#controller.abort(new Error(clientGone));
    return this.#controller.signal;
  }

  /** Marks the exchange as aborted: the response cannot be delivered. */
  protected setGone(reason = clientGone): void {
    this.#isGone = true;
    this.#controller?.abort(new Error(reason));
  }

  /** Tracks a wait for the client. @param drained resolves when the client has read */
  protected async whenRead(drained: Promise<void>): Promise<void> {
    this.unreadMs = performance.now();
    this.onUnread?.();
    await drained;
    this.unreadMs = undefined;
  }

  setHeader(name: string, value: string | string[]): void {
    this.answerHeaders.set(name, value);
  }

  appendHeader(name: string, value: string): void {
    this.answerHeaders.append(name, value);
  }
}
