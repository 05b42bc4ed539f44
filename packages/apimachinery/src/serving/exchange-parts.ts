import { type IncomingHttpHeaders, type OutgoingHttpHeader, type OutgoingHttpHeaders, validateHeaderName } from "node:http";
import type { Writable } from "node:stream";
import type { ResponseStream } from "./exchange.ts";

export type HeaderValue = string | number | string[];

type Header = [name: string, value: HeaderValue];

/** Headers that filters set before the answer is known. Names are kept in lower case; a list, since there are few. */
export class ResponseHeaders {
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

  /** These and the answer's own, which win. */
  merged(own: OutgoingHttpHeaders): Iterable<Header> {
    const all = this.#headers.slice();
    for (const name in own) {
      const value: OutgoingHttpHeader | undefined = own[name];
      if (value !== undefined) put(all, name.toLowerCase(), value as HeaderValue);
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
 * For a request's fields by their names in lower case. Without a prototype: a client may call its fields what it likes. `authorization`
 * should be put in last: it is taken away when it has been looked at, and taking another makes a hash table of them.
 */
export function newRequestFields(): IncomingHttpHeaders {
  return new (RequestFields as unknown as new () => IncomingHttpHeaders)();
}

// `Object.create(null)` makes hash tables; these share their shapes.
function RequestFields(): void {}
RequestFields.prototype = Object.create(null);

const canonical = new Map<string, string>();

/** `content-type` → `Content-Type`, as Go writes names over HTTP/1.1. @throws TypeError for what is no name */
export function canonicalHeader(name: string): string {
  let form = canonical.get(name);
  if (form === undefined) {
    validateHeaderName(name);
    form = name.replace(/(^|-)([a-z])/g, (_match, dash: string, letter: string) => dash + letter.toUpperCase());
    if (canonical.size < 1000) canonical.set(name, form);
  }
  return form;
}

export function bodyMayFollow(status: number): boolean {
  return status >= 200 && status !== 204 && status !== 304;
}

/** Without the mapping prefix that a dual-stack socket puts before IPv4 addresses. */
export function plainAddress(address: string | undefined): string {
  if (address === undefined) return "";
  return address.startsWith("::ffff:") ? address.slice(7) : address;
}

/** Resolves when the writable takes more; rejects when it is gone. */
export function whenDrained(writable: Writable): Promise<void> {
  if (writable.destroyed || writable.closed) return Promise.reject(new Error("the client went away"));
  if (!writable.writableNeedDrain) return Promise.resolve();
  return new Promise((resolve, reject) => {
    const onDrain = (): void => {
      writable.off("close", onClose);
      resolve();
    };
    const onClose = (): void => {
      writable.off("drain", onDrain);
      reject(new Error("the client went away"));
    };
    writable.once("drain", onDrain);
    writable.once("close", onClose);
  });
}

/** Of an answer that has no content, whatever is given to it. */
export const nowhere: ResponseStream = { write: () => true, drained: () => Promise.resolve(), end() {} };

/** Of a request whose body is not there, or not all of it. */
export const goneInRequest = "the client went away while it sent its request";

let dateSecond = 0;
let dateText = "";

/** The time of day for a Date header, made once a second. */
export function httpDate(): string {
  const second = Math.floor(Date.now() / 1000);
  if (second !== dateSecond) {
    dateSecond = second;
    dateText = new Date(second * 1000).toUTCString();
  }
  return dateText;
}
