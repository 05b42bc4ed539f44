import type { OutgoingHttpHeader, OutgoingHttpHeaders } from "node:http";
import type { Writable } from "node:stream";

export type HeaderValue = string | number | string[];

/** Headers that filters set before the answer is known. Names are kept in lower case. */
export class ResponseHeaders {
  #values: Map<string, HeaderValue> | undefined;

  set(name: string, value: string | string[]): void {
    this.#values ??= new Map();
    this.#values.set(name.toLowerCase(), value);
  }

  append(name: string, value: string): void {
    this.#values ??= new Map();
    const key = name.toLowerCase();
    const before = this.#values.get(key);
    if (before === undefined) this.#values.set(key, value);
    else this.#values.set(key, [...(Array.isArray(before) ? before : [String(before)]), value]);
  }

  entries(): Iterable<[string, HeaderValue]> {
    return this.#values ?? [];
  }

  /** These and the answer's own, which win. */
  merged(own: OutgoingHttpHeaders): Iterable<[string, HeaderValue]> {
    const all = new Map<string, HeaderValue>(this.#values);
    for (const name in own) {
      const value: OutgoingHttpHeader | undefined = own[name];
      if (value !== undefined) all.set(name.toLowerCase(), value as HeaderValue);
    }
    return all;
  }
}

const canonical = new Map<string, string>();

/** `content-type` → `Content-Type`, as Go writes names over HTTP/1.1. */
export function canonicalHeader(name: string): string {
  let form = canonical.get(name);
  if (form === undefined) {
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
