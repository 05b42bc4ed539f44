/** One DER element. Source: ITU-T X.690 */
interface Element {
  readonly tag: number;
  readonly content: Buffer;
  /** Offset of the next element. */
  readonly end: number;
}

/** @throws Error for truncated or malformed input */
export function readElement(bytes: Buffer, at: number): Element {
  const tag = bytes[at];
  let length = bytes[at + 1];
  let start = at + 2;
  if (tag === undefined || length === undefined) throw new Error("truncated DER");
  if (length >= 0x80) {
    const octets = length & 0x7f;
    if (octets === 0 || octets > 4 || start + octets > bytes.length) throw new Error("malformed DER length");
    length = bytes.readUIntBE(start, octets);
    start += octets;
  }
  if (start + length > bytes.length) throw new Error("truncated DER");
  return { tag, content: bytes.subarray(start, start + length), end: start + length };
}

/** The elements of a SEQUENCE, a SET or an explicit tag. */
export function readAll(content: Buffer): Element[] {
  const elements: Element[] = [];
  for (let at = 0; at < content.length; ) {
    const element = readElement(content, at);
    elements.push(element);
    at = element.end;
  }
  return elements;
}

/** Decodes a string element by its tag. @throws Error for a BMPString with half a character */
export function readString({ tag, content }: Element): string {
  if (tag === 0x1e && content.length % 2 !== 0) throw new Error("malformed BMPString");
  if (tag === 0x1e) return Buffer.from(content).swap16().toString("utf16le"); // BMPString
  return content.toString(tag === 0x14 ? "latin1" : "utf8"); // T61String, and all others
}

/** Encodes an element. */
export function element(tag: number, ...contents: readonly Buffer[]): Buffer {
  const content = Buffer.concat(contents);
  if (content.length < 0x80) return Buffer.concat([Buffer.of(tag, content.length), content]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(content.length);
  const octets = length.subarray(length.findIndex((byte) => byte !== 0));
  return Buffer.concat([Buffer.of(tag, 0x80 | octets.length), octets, content]);
}

export const sequence = (...elements: readonly Buffer[]): Buffer => element(0x30, ...elements);

/** @param unused number of bits of the last byte that do not count */
export const bitString = (bytes: Buffer, unused: number): Buffer => element(0x03, Buffer.of(unused), bytes);

/** @param dotted `1.2.840.10045.4.3.2` */
export function objectIdentifier(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  return element(0x06, Buffer.from([first * 40 + second, ...rest].flatMap(base128)));
}

/** Seven bits in each byte, the highest bit set in all but the last. */
function base128(value: number): number[] {
  const bytes = [value & 0x7f];
  for (let rest = value >>> 7; rest > 0; rest >>>= 7) bytes.unshift(0x80 | (rest & 0x7f));
  return bytes;
}
