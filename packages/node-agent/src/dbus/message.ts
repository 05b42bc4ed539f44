/** A value with its type: D-Bus type `v`. */
export interface Variant {
  type: string;
  value: DbusValue;
}
export type DbusValue = string | number | bigint | boolean | Variant | readonly DbusValue[];

type MessageKind = "call" | "return" | "error" | "signal";

export interface DbusMessage {
  /** Undefined: a kind that is newer than this code; such messages are to be ignored. */
  kind: MessageKind | undefined;
  serial: number;
  path?: string;
  interface?: string;
  member?: string;
  errorName?: string;
  replySerial?: number;
  destination?: string;
  sender?: string;
  /** Types of the body in order: `ssi`. */
  signature?: string;
  body: readonly DbusValue[];
}

const kinds: readonly (MessageKind | undefined)[] = [undefined, "call", "return", "error", "signal"];
/** Header fields by number. */
const fields = [
  [1, "path", "o"],
  [2, "interface", "s"],
  [3, "member", "s"],
  [4, "errorName", "s"],
  [5, "replySerial", "u"],
  [6, "destination", "s"],
  [7, "sender", "s"],
  [8, "signature", "g"],
] as const;

const fixedHeaderBytes = 16;
const maxMessageBytes = 1 << 20;

const alignments: Readonly<Record<string, number>> = { y: 1, g: 1, v: 1, n: 2, q: 2, x: 8, t: 8, d: 8, "(": 8, "{": 8 };
const alignmentOf = (type: string): number => alignments[type[0] ?? ""] ?? 4;

/** Encodes a message; supports the types that systemd and logind use. Source: the D-Bus Specification */
export function encodeMessage(message: DbusMessage): Buffer {
  const body = new Writer();
  for (const [i, type] of splitSignature(message.signature ?? "").entries()) body.write(type, message.body[i]!);
  const header = new Writer();
  header.write("y", "l".charCodeAt(0));
  header.write("y", kinds.indexOf(message.kind));
  header.write("y", 0);
  header.write("y", 1);
  header.write("u", body.length);
  header.write("u", message.serial);
  const present = fields.flatMap(([number, name, type]): DbusValue[] => {
    const value = message[name];
    return value === undefined || value === "" ? [] : [[number, { type, value }]];
  });
  header.write("a(yv)", present);
  header.align(8);
  return Buffer.concat([header.bytes(), body.bytes()]);
}

/**
 * @returns the first message in `data` and its size; undefined while it is incomplete
 * @throws Error when the data is not a D-Bus message
 */
export function decodeMessage(data: Buffer): { message: DbusMessage; size: number } | undefined {
  if (data.length < fixedHeaderBytes) return undefined;
  const little = data[0] === "l".charCodeAt(0);
  if (!little && data[0] !== "B".charCodeAt(0)) throw new Error("not a D-Bus message");
  const u32 = (at: number): number => (little ? data.readUInt32LE(at) : data.readUInt32BE(at));
  const bodyBytes = u32(4);
  const headerBytes = fixedHeaderBytes + Math.ceil(u32(12) / 8) * 8;
  if (headerBytes + bodyBytes > maxMessageBytes)
    throw new Error(`D-Bus message of ${headerBytes + bodyBytes} bytes: the protocol allows ${maxMessageBytes}`);
  if (data.length < headerBytes + bodyBytes) return undefined;
  const kind = kinds[data[1] ?? 0];
  const header = new Reader(data.subarray(0, headerBytes), little, fixedHeaderBytes - 4);
  const message: DbusMessage = { kind, serial: u32(8), body: [] };
  for (const entry of listIn(header.read("a(yv)"))) {
    const [number, content] = listIn(entry);
    const [, name] = fields.find(([known]) => known === number) ?? [];
    if (name === "replySerial") message[name] = numberIn(variantIn(content).value);
    else if (name !== undefined) message[name] = textIn(variantIn(content).value);
  }
  const body = new Reader(data.subarray(headerBytes, headerBytes + bodyBytes), little, 0);
  message.body = splitSignature(message.signature ?? "").map((type) => body.read(type));
  return { message, size: headerBytes + bodyBytes };
}

// Each returns a value as the type that its signature says. @throws Error for a value of another type

function textIn(value: DbusValue | undefined): string {
  if (typeof value === "string") return value;
  throw new Error("a D-Bus value is not a string");
}

function numberIn(value: DbusValue | undefined): number {
  if (typeof value === "number") return value;
  throw new Error("a D-Bus value is not a number");
}

function listIn(value: DbusValue | undefined): readonly DbusValue[] {
  if (typeof value === "object" && !("type" in value)) return value;
  throw new Error("a D-Bus value is not a list");
}

export function variantIn(value: DbusValue | undefined): Variant {
  if (typeof value === "object" && "type" in value) return value;
  throw new Error("a D-Bus value is not a variant");
}

/** Splits a signature into complete types: `sa{sv}(ii)` → `s`, `a{sv}`, `(ii)`. */
export function splitSignature(signature: string): string[] {
  const types: string[] = [];
  for (let at = 0; at < signature.length; ) {
    const end = endOfType(signature, at);
    types.push(signature.slice(at, end));
    at = end;
  }
  return types;
}

function endOfType(signature: string, start: number): number {
  let at = start;
  while (signature[at] === "a") at++;
  const open = signature[at];
  if (open !== "(" && open !== "{") return at + 1;
  for (let depth = 0; at < signature.length; at++) {
    if (signature[at] === "(" || signature[at] === "{") depth++;
    if (signature[at] === ")" || signature[at] === "}") depth--;
    if (depth === 0) return at + 1;
  }
  throw new Error(`not a D-Bus signature: ${signature}`);
}

class Writer {
  #parts: Buffer[] = [];
  length = 0;

  bytes(): Buffer {
    return Buffer.concat(this.#parts);
  }

  align(to: number): void {
    const rest = this.length % to;
    if (rest !== 0) this.#push(Buffer.alloc(to - rest));
  }

  write(type: string, value: DbusValue): void {
    this.align(alignmentOf(type));
    switch (type[0]) {
      case "y":
        this.#push(Buffer.from([numberIn(value)]));
        return;
      case "b":
        this.#uint32(value === true ? 1 : 0);
        return;
      case "u":
      case "h":
        this.#uint32(numberIn(value));
        return;
      case "i":
        this.#uint32(numberIn(value) >>> 0);
        return;
      case "t": {
        const bytes = Buffer.alloc(8);
        bytes.writeBigUInt64LE(typeof value === "bigint" ? value : BigInt(numberIn(value)));
        this.#push(bytes);
        return;
      }
      case "s":
      case "o":
        this.#uint32(Buffer.byteLength(textIn(value)));
        this.#push(Buffer.from(`${textIn(value)}\0`));
        return;
      case "g":
        this.#push(Buffer.from(`${String.fromCharCode(textIn(value).length)}${textIn(value)}\0`, "latin1"));
        return;
      case "v": {
        const { type: inner, value: content } = variantIn(value);
        this.write("g", inner);
        this.write(inner, content);
        return;
      }
      case "(": {
        const members = splitSignature(type.slice(1, -1));
        for (const [i, member] of members.entries()) this.write(member, listIn(value)[i]!);
        return;
      }
      case "a": {
        const element = type.slice(1);
        // The length excludes the padding before the first element.
        const lengthAt = this.#parts.length;
        this.#uint32(0);
        this.align(alignmentOf(element));
        const start = this.length;
        for (const one of listIn(value)) this.write(element, one);
        this.#parts[lengthAt]?.writeUInt32LE(this.length - start);
        return;
      }
      default:
        throw new Error(`D-Bus type ${type} cannot be encoded`);
    }
  }

  #uint32(value: number): void {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(value);
    this.#push(bytes);
  }

  #push(bytes: Buffer): void {
    this.#parts.push(bytes);
    this.length += bytes.length;
  }
}

class Reader {
  readonly #data: Buffer;
  readonly #little: boolean;
  #at: number;

  constructor(data: Buffer, little: boolean, at: number) {
    this.#data = data;
    this.#little = little;
    this.#at = at;
  }

  read(type: string): DbusValue {
    const to = alignmentOf(type);
    this.#at = Math.ceil(this.#at / to) * to;
    switch (type[0]) {
      case "y":
        return this.#take(1)[0]!;
      case "b":
        return this.#uint32() === 1;
      case "u":
      case "h":
        return this.#uint32();
      case "i":
        return this.#uint32() | 0;
      case "n":
        return this.#little ? this.#take(2).readInt16LE() : this.#take(2).readInt16BE();
      case "q":
        return this.#little ? this.#take(2).readUInt16LE() : this.#take(2).readUInt16BE();
      case "x":
        return this.#little ? this.#take(8).readBigInt64LE() : this.#take(8).readBigInt64BE();
      case "t":
        return this.#little ? this.#take(8).readBigUInt64LE() : this.#take(8).readBigUInt64BE();
      case "d":
        return this.#little ? this.#take(8).readDoubleLE() : this.#take(8).readDoubleBE();
      case "s":
      case "o":
        return this.#text(this.#uint32());
      case "g":
        return this.#text(this.#take(1)[0]!);
      case "v": {
        const inner = textIn(this.read("g"));
        return { type: inner, value: this.read(inner) };
      }
      case "(":
      case "{":
        return splitSignature(type.slice(1, -1)).map((member) => this.read(member));
      case "a": {
        const element = type.slice(1);
        const length = this.#uint32();
        const align = alignmentOf(element);
        this.#at = Math.ceil(this.#at / align) * align;
        const end = this.#at + length;
        const elements: DbusValue[] = [];
        while (this.#at < end) {
          const before = this.#at;
          elements.push(this.read(element));
          if (this.#at === before) throw new Error(`D-Bus type ${element} has no content`);
        }
        return elements;
      }
      default:
        throw new Error(`D-Bus type ${type} cannot be decoded`);
    }
  }

  #text(length: number): string {
    const text = this.#take(length).toString("utf8");
    this.#take(1);
    return text;
  }

  #uint32(): number {
    return this.#little ? this.#take(4).readUInt32LE() : this.#take(4).readUInt32BE();
  }

  #take(count: number): Buffer {
    const bytes = this.#data.subarray(this.#at, this.#at + count);
    if (bytes.length < count) throw new Error("D-Bus message ends too early");
    this.#at += count;
    return bytes;
  }
}
