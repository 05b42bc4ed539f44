/**
 * The headers of HTTP/2 without their compression's memory: we announce a dynamic table of 0 bytes and use none, so that a
 * block means the same wherever it comes. The same few blocks come with every answer; they are looked up by their bytes.
 * Source: RFC 7541
 */
export type Fields = ReadonlyMap<string, string>;

/** Each field as a literal that is not indexed. */
export function encodeFields(fields: readonly (readonly [name: string, value: string])[]): Buffer {
  const bytes: number[] = [];
  for (const [name, value] of fields) {
    bytes.push(0);
    for (const text of [name, value]) {
      const octets = Buffer.from(text, "latin1");
      pushInteger(bytes, octets.length, 7);
      bytes.push(...octets);
    }
  }
  return Buffer.from(bytes);
}

function pushInteger(bytes: number[], value: number, prefixBits: number): void {
  const most = 2 ** prefixBits - 1;
  if (value < most) {
    bytes.push(value);
    return;
  }
  bytes.push(most);
  let rest = value - most;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  bytes.push(rest);
}

const mostKnown = 256;

/** @returns a function that remembers what short blocks mean @throws Error for a block that is malformed or needs a memory */
export function newFieldsDecoder(): (block: Buffer) => Fields {
  const known = new Map<string, Fields>();
  return (block) => {
    if (block.length > 256) return decodeFields(block);
    const key = block.toString("latin1");
    let fields = known.get(key);
    if (fields === undefined) {
      fields = decodeFields(block);
      if (known.size >= mostKnown) known.clear();
      known.set(key, fields);
    }
    return fields;
  };
}

/** A field that comes twice has its last value. */
export function decodeFields(block: Buffer): Fields {
  const fields = new Map<string, string>();
  let at = 0;
  while (at < block.length) {
    const first = block[at] as number;
    if (first >= 0x80) {
      const [name, value] = staticEntry(integer(7));
      fields.set(name, value);
    } else if (first >= 0x20 && first < 0x40) {
      integer(5); // the size of the dynamic table: of no use
    } else {
      const index = integer(first >= 0x40 ? 6 : 4);
      const name = index === 0 ? text() : staticEntry(index)[0];
      fields.set(name, text());
    }
  }
  return fields;

  function octet(): number {
    const value = block[at++];
    if (value === undefined) throw new Error("a block of headers is cut off");
    return value;
  }

  function integer(prefixBits: number): number {
    const most = 2 ** prefixBits - 1;
    let value = octet() & most;
    if (value < most) return value;
    for (let scale = 1; ; scale *= 128) {
      const next = octet();
      value += (next & 0x7f) * scale;
      if (value > 2 ** 31) throw new Error("a number in a block of headers is too large");
      if (next < 128) return value;
    }
  }

  function text(): string {
    const coded = ((block[at] ?? 0) & 0x80) !== 0;
    const length = integer(7);
    if (at + length > block.length) throw new Error("a block of headers is cut off");
    const octets = block.subarray(at, at + length);
    at += length;
    return coded ? decodeHuffman(octets) : octets.toString("latin1");
  }
}

function staticEntry(index: number): readonly [string, string] {
  const entry = staticTable[index - 1];
  if (entry === undefined) throw new Error(`there is no header with index ${index}`);
  return entry;
}

/** RFC 7541, appendix A. */
const staticTable: readonly (readonly [string, string])[] = [
  [":authority", ""],
  [":method", "GET"],
  [":method", "POST"],
  [":path", "/"],
  [":path", "/index.html"],
  [":scheme", "http"],
  [":scheme", "https"],
  ...["200", "204", "206", "304", "400", "404", "500"].map((code) => [":status", code] as const),
  ["accept-charset", ""],
  ["accept-encoding", "gzip, deflate"],
  ...(
    "accept-language accept-ranges accept access-control-allow-origin age allow authorization cache-control " +
    "content-disposition content-encoding content-language content-length content-location content-range content-type cookie " +
    "date etag expect expires from host if-match if-modified-since if-none-match if-range if-unmodified-since last-modified " +
    "link location max-forwards proxy-authenticate proxy-authorization range referer refresh retry-after server set-cookie " +
    "strict-transport-security transfer-encoding user-agent vary via www-authenticate"
  )
    .split(" ")
    .map((name) => [name, ""] as const),
];

/**
 * RFC 7541, appendix B, by the length of the code; those of one length follow each other. What is not ASCII has no place
 * in a header of gRPC, which escapes it.
 */
const huffmanLengths: readonly (readonly [bits: number, characters: string])[] = [
  [5, "012aceiost"],
  [6, " %-./3456789=A_bdfghlmnpru"],
  [7, ":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz"],
  [8, "&*,;XZ"],
  [10, '!"()?'],
  [11, "'+|"],
  [12, "#>"],
  [13, "\0$@[]~"],
  [14, "^}"],
  [15, "<`{"],
  [19, "\\"],
];
const longestCode = 19;

const codeKey = (bits: number, code: number): number => bits * 2 ** 20 + code;

const characterOf = new Map<number, string>();
{
  let code = 0;
  let before = 0;
  for (const [bits, characters] of huffmanLengths) {
    code *= 2 ** (bits - before);
    for (const character of characters) characterOf.set(codeKey(bits, code++), character);
    before = bits;
  }
}

function decodeHuffman(octets: Buffer): string {
  let text = "";
  let code = 0;
  let bits = 0;
  for (const octet of octets) {
    for (let bit = 7; bit >= 0; bit--) {
      code = code * 2 + ((octet >> bit) & 1);
      bits++;
      const character = characterOf.get(codeKey(bits, code));
      if (character !== undefined) {
        text += character;
        code = 0;
        bits = 0;
      } else if (bits > longestCode) throw new Error("a header is not ASCII");
    }
  }
  // What is left fills up the last octet with ones.
  if (bits > 7 || code !== 2 ** bits - 1) throw new Error("a header ends within a character");
  return text;
}
