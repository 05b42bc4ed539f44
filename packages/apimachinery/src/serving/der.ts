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
