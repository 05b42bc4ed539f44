import type { Steps } from "../../process/event-loop/steps.ts";
import { requestEntityTooLarge } from "../errors/status-error.ts";
import { goQuote } from "../meta/go-quote.ts";

/**
 * Maximum nesting of a value. Parsed values are processed by recursive code (clones, comparisons, encoders), which
 * overflows the stack at 1,500 to 4,000 levels.
 */
export const maxDepth = 1000;
/** Maximum nesting of a text, including unknown fields, which are dropped. Source: encoding/json scanner.go, maxNestingDepth */
export const maxTextDepth = 10_000;

/** Larger texts are checked for nesting first: `JSON.parse` takes 50 bytes per level, so 3 MB of `[` would take 160 MB. */
const largeText = 256 * 1024;

/** Has Go's error text, e.g. `invalid character 'x' looking for beginning of value`. */
export class JsonSyntaxError extends Error {}
/** The text is nested deeper than allowed, whether or not it is valid otherwise. */
export class JsonTooDeepError extends JsonSyntaxError {}
export interface ParseOptions {
  /**
   * Called for each duplicate key of an object. The last value wins and determines the key's position.
   * @param path returns the key's path, e.g. `spec.containers[0].name`
   */
  readonly onDuplicate?: (container: object, key: string, path: () => string) => void;
  /**
   * Numbers that are not written as 64-bit integers (`1.0`, `1e3`) are returned as symbols with the literal as their
   * description, because Go's integer types reject them whatever their value. `numberOf` returns the value.
   */
  readonly literals?: boolean;
  /** Set when `hasUnusualNumbers` returned false for the text; skips that check. */
  readonly plainNumbers?: boolean;
  /** Default: the constant `maxDepth`. */
  readonly maxDepth?: number;
  /**
   * Skip the depth check before `JSON.parse` (which is not recursive) unless the text is large. The caller checks the
   * depth of the value. Counting brackets would take as long as parsing.
   */
  readonly anyDepth?: boolean;
  /** Most fields of one object, in steps only. Default: no limit. */
  readonly maxFields?: number;
}

/**
 * Parses JSON. Integers beyond 2^53 that fit into 64 bits become bigint; all else is as with `JSON.parse`.
 * @throws JsonSyntaxError
 */
export function parseJsonText(text: string, options: ParseOptions = {}): unknown {
  const hasPlainNumbers = options.plainNumbers || (!/\d{16}/.test(text) && !(options.literals && hasLiterals(text)));
  const isPlain = options.onDuplicate === undefined && hasPlainNumbers;
  if (!isPlain || !options.anyDepth || text.length > largeText) refuseDeep(text, options.maxDepth);
  if (isPlain) {
    try {
      return JSON.parse(text);
    } catch {
      // Parsed again below for Go's error text.
    }
    if (options.anyDepth) refuseDeep(text, options.maxDepth);
  }
  return new Parser(text, options).parse();
}

/** Parsed values between two yields: a few milliseconds. */
const valuesPerStep = 4096;

/**
 * As `parseJsonText`, for texts of many values, which `JSON.parse` would block the event loop for.
 * @throws JsonSyntaxError; StatusError 413 for an object of more than `maxFields`
 */
export function* parseJsonInSteps(text: string, options: ParseOptions = {}): Steps<unknown> {
  refuseDeep(text, options.maxDepth);
  yield;
  return yield* new Parser(text, options).inSteps();
}

/** @throws JsonSyntaxError when the text is nested deeper than `levels` */
export function refuseDeep(text: string, levels = maxDepth): void {
  const deep = text.length > levels ? nestingBeyond(text, levels) : undefined;
  if (deep !== undefined) throw new JsonTooDeepError(`invalid character '${text[deep]}' exceeded max depth`);
}

/** True when a text may contain numbers that need the slow parser: long integers and literals. False positives are possible. */
export function hasUnusualNumbers(text: string): boolean {
  // A common prefix of both alternatives keeps the regular expression fast. The second handles a bare number.
  return /[:,[\s]-?\d(?:\d*[.eE]|\d{15})/.test(text) || /^-?\d/.test(text);
}

/** True when a text may contain numbers not written as 64-bit integers. Strings can cause false positives. */
export function hasLiterals(text: string): boolean {
  return /(?:^|[:,[\s])-?\d+(?:\.|[eE])[-+.\deE]*(?:[\s,\]}]|$)|\d{19}/.test(text);
}

/** The numeric value of a symbol from `ParseOptions.literals`. */
export function numberOf(literal: symbol): number {
  return Number(literal.description);
}

function nestingBeyond(text: string, levels: number): number | undefined {
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    switch (text.charCodeAt(i)) {
      case 0x22: // a string: skip to its end
        do {
          i = text.indexOf('"', i + 1);
          if (i < 0) return undefined;
        } while (text.charCodeAt(i - 1) === 0x5c && isEscaped(text, i));
        break;
      case 0x5b:
      case 0x7b:
        if (++depth > levels) return i;
        break;
      case 0x5d:
      case 0x7d:
        depth--;
        break;
    }
  }
  return undefined;
}

function isEscaped(text: string, quote: number): boolean {
  let backslashes = 0;
  while (text.charCodeAt(quote - 1 - backslashes) === 0x5c) backslashes++;
  return backslashes % 2 === 1;
}

interface Open {
  readonly container: unknown[] | Record<string, unknown>;
  /** The key whose value is being parsed; unused in lists. */
  key: string;
  /** Fields so far, repeated ones included. */
  fields: number;
}

/** An iterative parser, so that no input can exhaust the stack. */
class Parser {
  readonly #text: string;
  readonly #options: ParseOptions;
  #at = 0;
  readonly #open: Open[] = [];

  constructor(text: string, options: ParseOptions) {
    this.#text = text;
    this.#options = options;
  }

  parse(): unknown {
    return this.#read(Number.POSITIVE_INFINITY);
  }

  *inSteps(): Steps<unknown> {
    for (;;) {
      const value = this.#read(valuesPerStep);
      if (value !== paused) return value;
      yield;
    }
  }

  /** @returns the whole value; `paused` when there are more than `values` left to read */
  #read(values: number): unknown {
    for (let count = 0; ; count++) {
      if (count === values) return paused;
      let value = this.#valueOrOpen();
      if (value === opened) continue;
      // A value is complete: add it to its container, and close the containers that end after it.
      for (;;) {
        const top = this.#open.at(-1);
        if (top === undefined) {
          this.#space();
          if (this.#at < this.#text.length) throw this.#unexpected("after top-level value");
          return value;
        }
        this.#put(top, value);
        this.#space();
        const char = this.#text[this.#at];
        const isList = Array.isArray(top.container);
        if (char === ",") {
          this.#at++;
          if (!isList) this.#key(top);
          break;
        }
        if (char !== (isList ? "]" : "}")) throw this.#unexpected(isList ? "after array element" : "after object key:value pair");
        this.#at++;
        value = top.container;
        this.#open.pop();
      }
    }
  }

  #valueOrOpen(): unknown {
    this.#space();
    const char = this.#text[this.#at];
    switch (char) {
      case "{":
      case "[": {
        this.#at++;
        const top: Open = { container: char === "[" ? [] : {}, key: "", fields: 0 };
        this.#space();
        if (this.#text[this.#at] === (char === "[" ? "]" : "}")) {
          this.#at++;
          return top.container;
        }
        this.#open.push(top);
        if (char === "{") this.#key(top);
        return opened;
      }
      case '"':
        return this.#string();
      case "t":
        return this.#literal("true", true);
      case "f":
        return this.#literal("false", false);
      case "n":
        return this.#literal("null", null);
      default:
        if (char === "-" || (char !== undefined && char >= "0" && char <= "9")) return this.#number();
        throw this.#unexpected("looking for beginning of value");
    }
  }

  #put(top: Open, value: unknown): void {
    if (Array.isArray(top.container)) {
      top.container.push(value);
      return;
    }
    const { onDuplicate, maxFields } = this.#options;
    if (maxFields !== undefined && ++top.fields > maxFields)
      throw requestEntityTooLarge(`an object has more than ${maxFields} fields`);
    if (onDuplicate !== undefined && Object.hasOwn(top.container, top.key)) {
      onDuplicate(top.container, top.key, () => this.#path());
      delete top.container[top.key];
    }
    setOwn(top.container, top.key, value);
  }

  #path(): string {
    let path = "";
    for (const { container, key } of this.#open) {
      if (Array.isArray(container)) path += `[${container.length}]`;
      else path += path === "" ? key : `.${key}`;
    }
    return path;
  }

  #key(top: Open): void {
    this.#space();
    if (this.#text[this.#at] !== '"') throw this.#unexpected("looking for beginning of object key string");
    top.key = this.#string();
    this.#space();
    if (this.#text[this.#at] !== ":") throw this.#unexpected("after object key");
    this.#at++;
  }

  #string(): string {
    const start = this.#at;
    let end = this.#text.indexOf('"', start + 1);
    while (end > 0 && this.#text.charCodeAt(end - 1) === 0x5c && isEscaped(this.#text, end))
      end = this.#text.indexOf('"', end + 1);
    if (end < 0) throw this.#stringFault(start);
    this.#at = end + 1;
    try {
      const text: string = JSON.parse(this.#text.slice(start, end + 1));
      return text;
    } catch {
      throw this.#stringFault(start);
    }
  }

  /** The first fault of a string. */
  #stringFault(start: number): JsonSyntaxError {
    for (let at = start + 1; ; ) {
      const code = this.#text.charCodeAt(at);
      if (Number.isNaN(code)) return new JsonSyntaxError("unexpected end of JSON input");
      if (code < 0x20) {
        this.#at = at;
        return this.#unexpected("in string literal");
      }
      if (code === 0x5c) at = this.#escape(at);
      else at++;
    }
  }

  /** @returns the position after the escape that begins at `at`. */
  #escape(at: number): number {
    const char = this.#text[at + 1];
    if (char === undefined) throw new JsonSyntaxError("unexpected end of JSON input");
    if ('"\\/bfnrt'.includes(char)) return at + 2;
    if (char !== "u") {
      this.#at = at + 1;
      throw this.#unexpected("in string escape code");
    }
    for (let i = at + 2; i < at + 6; i++) {
      if (!/[0-9a-fA-F]/.test(this.#text[i] ?? "")) {
        this.#at = i;
        throw this.#unexpected("in \\u hexadecimal character escape");
      }
    }
    return at + 6;
  }

  #literal<T>(word: string, value: T): T {
    for (let i = 1; i < word.length; i++) {
      if (this.#text[this.#at + i] !== word[i]) {
        this.#at += i;
        throw this.#unexpected(`in literal ${word} (expecting '${word[i]}')`);
      }
    }
    this.#at += word.length;
    return value;
  }

  #number(): number | bigint | symbol {
    const start = this.#at;
    const isDigit = (): boolean => {
      const char = this.#text[this.#at];
      return char !== undefined && char >= "0" && char <= "9";
    };
    const digits = (context: string): void => {
      if (!isDigit()) throw this.#unexpected(context);
      while (isDigit()) this.#at++;
    };
    if (this.#text[this.#at] === "-") this.#at++;
    if (this.#text[this.#at] === "0") this.#at++;
    else digits("in numeric literal");
    let integer = true;
    if (this.#text[this.#at] === ".") {
      integer = false;
      this.#at++;
      digits("after decimal point in numeric literal");
    }
    if (this.#text[this.#at] === "e" || this.#text[this.#at] === "E") {
      integer = false;
      this.#at++;
      if (this.#text[this.#at] === "+" || this.#text[this.#at] === "-") this.#at++;
      digits("in exponent of numeric literal");
    }
    const literal = this.#text.slice(start, this.#at);
    const value = Number(literal);
    if (integer && Number.isSafeInteger(value)) return value;
    const exact = integer && literal.length <= 20 ? BigInt(literal) : 1n << 64n;
    if (exact === BigInt.asIntN(64, exact)) return exact;
    return this.#options.literals ? Symbol(literal) : value;
  }

  #space(): void {
    for (;;) {
      const code = this.#text.charCodeAt(this.#at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
      this.#at++;
    }
  }

  #unexpected(context: string): JsonSyntaxError {
    const char = this.#text[this.#at];
    if (char === undefined) return new JsonSyntaxError("unexpected end of JSON input");
    return new JsonSyntaxError(`invalid character ${quoteChar(char)} ${context}`);
  }
}

const opened = Symbol("opened");
const paused = Symbol("paused");

function quoteChar(char: string): string {
  if (char === "'") return "'\\''";
  if (char === '"') return "'\"'";
  return `'${goQuote(char).slice(1, -1)}'`;
}

/** True when a value is nested deeper than `levels`. Iterates level by level, so that no value can exhaust the stack. */
export function isTooDeep(value: unknown, levels: number): boolean {
  let level = isObject(value) ? [value] : [];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth >= levels) return true;
    const below: Record<string, unknown>[] = [];
    for (const container of level) {
      for (const key in container) {
        const inner = container[key];
        if (isObject(inner)) below.push(inner);
      }
    }
    level = below;
  }
  return false;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

/** Sets an own property whatever its name: `__proto__` is a legal map key. */
export function setOwn(target: object, key: string, value: unknown): void {
  if (key === "__proto__") Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true });
  else (target as Record<string, unknown>)[key] = value; // cast: any object takes any key
}

/**
 * Maximum number of values (fields, map entries, objects, lists) in a request body. A ConfigMap that fits into etcd
 * (1.5 MiB) has at most 160,000 entries: an entry takes nine or ten bytes with keys of three or four letters. Decoding
 * more would block the event loop for half a second, for an object that cannot be stored.
 */
export const maxBodyValues = 165_000;
/** This many scalar list elements count as one value: they are cheaper to decode than named values. */
const elementsForOne = 8;
/** Nesting beyond which counting stops: every decoder rejects such a body. */
const deepest = 10_000;

/** @returns StatusError 413 */
export function tooManyValues(): Error {
  return requestEntityTooLarge(`the body has more than ${maxBodyValues} values`);
}

/**
 * Counts the values of a JSON body before it is parsed. Other media types enforce the limit in their decoders.
 * @throws StatusError 413 when it has more than `maxBodyValues`
 */
export function refuseManyValues(body: Buffer): void {
  if (body.length <= maxBodyValues) return; // a value takes at least one byte
  const first = body.find((byte) => byte > 0x20);
  if (first !== openBrace && first !== openBracket) return;
  if (valuesIn(body) > maxBodyValues) throw tooManyValues();
}

const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const openBracket = 0x5b;
const backslash = 0x5c;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/** Counts colons, braces, brackets and commas outside of strings; stops at the limit, and returns 0 for excessive nesting. */
function valuesIn(body: Buffer): number {
  let named = 0;
  let elements = 0;
  let depth = 0;
  for (let i = 0; i < body.length && named + elements / elementsForOne <= maxBodyValues; i++) {
    const byte = body[i];
    if (byte === comma) elements++;
    else if (byte === colon) named++;
    else if (byte === openBracket || byte === openBrace) {
      named++;
      if (++depth > deepest) return 0;
    } else if (byte === closeBracket || byte === closeBrace) depth--;
    else if (byte === quote) i = endOfText(body, i);
  }
  return named + elements / elementsForOne;
}

function endOfText(body: Buffer, start: number): number {
  for (let i = start + 1; i < body.length; i++) {
    if (body[i] === backslash) i++;
    else if (body[i] === quote) return i;
  }
  return body.length;
}
