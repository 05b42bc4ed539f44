/** A header field, one character for each octet. */
interface Field {
  readonly name: string;
  readonly value: string;
}

const named = (name: string, value = ""): Field => ({ name, value });

/** The static table; the index of its first entry is 1. Source: RFC 7541, appendix A */
export const staticFields: readonly Field[] = [
  named(":authority"),
  named(":method", "GET"),
  named(":method", "POST"),
  named(":path", "/"),
  named(":path", "/index.html"),
  named(":scheme", "http"),
  named(":scheme", "https"),
  ...["200", "204", "206", "304", "400", "404", "500"].map((code) => named(":status", code)),
  named("accept-charset"),
  named("accept-encoding", "gzip, deflate"),
  ...(
    "accept-language accept-ranges accept access-control-allow-origin age allow authorization cache-control " +
    "content-disposition content-encoding content-language content-length content-location content-range content-type cookie " +
    "date etag expect expires from host if-match if-modified-since if-none-match if-range if-unmodified-since last-modified " +
    "link location max-forwards proxy-authenticate proxy-authorization range referer refresh retry-after server set-cookie " +
    "strict-transport-security transfer-encoding user-agent vary via www-authenticate"
  )
    .split(" ")
    .map((name) => named(name)),
];

const fieldOverhead = 32;

/** Size of a field in the dynamic table and in a field list. Source: RFC 7541, section 4.1; RFC 9113, section 10.5.1 */
const sizeOf = ({ name, value }: Field): number => name.length + value.length + fieldOverhead;

/** Default of SETTINGS_HEADER_TABLE_SIZE. Source: RFC 9113, section 6.5.2 */
const usualTableBytes = 4096;

/**
 * The indexing table of one connection: the static entries, then the dynamic ones, newest first. The oldest entries are evicted
 * when the size limit is exceeded.
 * Source: RFC 7541, section 2.3
 */
class FieldTable {
  readonly #ring: (Field | undefined)[];
  /** Length of the ring minus one; the length is a power of two. */
  readonly #mask: number;
  readonly #mostBytes: number;
  #limit: number;
  #newest = 0;
  #count = 0;
  #bytes = 0;

  /** @param mostBytes the limit announced to the peer */
  constructor(mostBytes: number) {
    let slots = 1;
    while (slots < mostBytes / fieldOverhead) slots *= 2;
    this.#ring = new Array(slots).fill(undefined);
    this.#mask = slots - 1;
    this.#mostBytes = mostBytes;
    this.#limit = Math.min(usualTableBytes, mostBytes);
  }

  /** @throws HpackError when the index is out of range */
  get(index: number): Field {
    const dynamic = index - staticFields.length;
    const field = dynamic <= 0 ? staticFields[index - 1] : dynamic <= this.#count ? this.#ring[this.#slot(dynamic)] : undefined;
    if (field === undefined) throw new HpackError(`no HPACK table entry with index ${index}`);
    return field;
  }

  /** Adds an entry, evicting old ones. An entry larger than the table empties it (RFC 7541, 4.4). */
  add(field: Field): void {
    const bytes = sizeOf(field);
    this.#shrinkTo(this.#limit - bytes);
    if (bytes > this.#limit) return;
    this.#newest = (this.#newest + 1) & this.#mask;
    this.#ring[this.#newest] = field;
    this.#count++;
    this.#bytes += bytes;
  }

  /** Applies a dynamic table size update. @throws HpackError above the announced limit */
  resize(bytes: number): void {
    if (bytes > this.#mostBytes) throw new HpackError(`HPACK table size ${bytes} exceeds ${this.#mostBytes}`);
    this.#limit = bytes;
    this.#shrinkTo(bytes);
  }

  /** @param index 1 is the newest */
  #slot(index: number): number {
    return (this.#newest + 1 - index) & this.#mask;
  }

  #shrinkTo(bytes: number): void {
    while (this.#count > 0 && this.#bytes > bytes) {
      const oldest = this.#slot(this.#count--);
      this.#bytes -= sizeOf(this.#ring[oldest]!);
      this.#ring[oldest] = undefined; // releases the field, which the size limit no longer counts
    }
  }
}

interface FieldsDecoderOptions {
  /** Size limit of the dynamic table that was announced to the peer, in bytes: 4096 by default. */
  readonly tableBytes?: number;
  /**
   * Size limit of the decoded field list, counting 32 bytes of overhead per field: 1 MiB by default. Source: RFC 9113, section
   * 10.5.1
   */
  readonly mostListBytes?: number;
}

export interface DecodedFields {
  /** Name, value, name, value … in wire order; one character for each octet. */
  readonly fields: string[];
  /** The list exceeded `mostListBytes`; `fields` holds only what fits. */
  readonly tooLarge: boolean;
  /** Number of decoded fields, including those beyond the limit. */
  readonly count: number;
}

/**
 * HPACK decoder of one connection. Blocks have to be decoded in wire order, because each may refer to table entries of earlier
 * ones.
 */
export interface FieldsDecoder {
  /** @throws HpackError for a malformed block; the connection cannot be used after that */
  decode(block: Buffer): DecodedFields;
}

/** Creates the HPACK decoder of one connection. Source: RFC 7541 */
export function newFieldsDecoder(options: FieldsDecoderOptions = {}): FieldsDecoder {
  const { tableBytes = usualTableBytes, mostListBytes = 2 ** 20 } = options;
  const table = new FieldTable(tableBytes);
  return {
    decode(block) {
      const reader = new BlockReader(block);
      resize(table, reader);
      const fields: string[] = [];
      let listBytes = 0;
      let count = 0;
      while (reader.hasMore()) {
        const field = nextField(table, reader);
        // An oversized list is decoded to its end: later blocks depend on the entries it adds to the table.
        listBytes += sizeOf(field);
        count++;
        if (listBytes <= mostListBytes) fields.push(field.name, field.value);
      }
      return { fields, tooLarge: listBytes > mostListBytes, count };
    },
  };
}

/** First octets of the field representations; lower values are literals without indexing. Source: RFC 7541, section 6 */
const forms = { indexed: 0x80, remembered: 0x40, resize: 0x20 } as const;

/**
 * An encoder that lowered and raised its table size since the last block signals both the minimum and the final size (RFC 7541,
 * 4.2).
 */
const mostResizes = 2;

function resize(table: FieldTable, reader: BlockReader): void {
  for (let i = 0; i < mostResizes && reader.hasMore() && isResize(reader.first()); i++) table.resize(reader.integer(5));
}

const isResize = (first: number): boolean => first >= forms.resize && first < forms.remembered;

function nextField(table: FieldTable, reader: BlockReader): Field {
  const first = reader.first();
  if (first >= forms.indexed) return table.get(reader.integer(7));
  if (isResize(first)) throw new HpackError("HPACK table size update after the first header field");
  const remembered = first >= forms.remembered;
  const index = reader.integer(remembered ? 6 : 4);
  const name = index === 0 ? reader.text() : table.get(index).name;
  const field = { name, value: reader.text() };
  if (remembered) table.add(field);
  return field;
}

/** Reads integers and strings from the front of a block. Source: RFC 7541, section 5 */
class BlockReader {
  readonly #block: Buffer;
  #at = 0;

  constructor(block: Buffer) {
    this.#block = block;
  }

  hasMore(): boolean {
    return this.#at < this.#block.length;
  }

  /** Peeks at the next octet. */
  first(): number {
    return this.#block[this.#at]!;
  }

  integer(prefixBits: number): number {
    const most = (1 << prefixBits) - 1;
    const value = this.#octet() & most;
    return value < most ? value : value + this.#longInteger();
  }

  text(): string {
    const coded = this.hasMore() && this.first() >= 0x80;
    const length = this.integer(7);
    const start = this.#at;
    if (length > this.#block.length - start) throw cutOff();
    this.#at = start + length;
    return coded ? decodeHuffman(this.#block, start, this.#at) : this.#block.toString("latin1", start, this.#at);
  }

  /** The continuation octets of an integer, least significant bits first. */
  #longInteger(): number {
    let value = 0;
    for (let scale = 1; scale <= largestScale; scale *= 128) {
      const octet = this.#octet();
      value += (octet & 0x7f) * scale;
      if (octet < 0x80) return value;
    }
    throw new HpackError("integer in a header block is too large");
  }

  #octet(): number {
    const octet = this.#block[this.#at++];
    if (octet === undefined) throw cutOff();
    return octet;
  }
}

/** Scale of the fifth and last continuation octet that is accepted: more than any index or length needs. */
const largestScale = 128 ** 4;

const cutOff = (): HpackError => new HpackError("truncated header block");

/** Longer blocks are not cached: they are rare or unique. */
const mostKnownBytes = 256;
const mostKnown = 256;

/**
 * Decodes the header blocks of a connection on which this side announced a dynamic table of 0 bytes, so that equal bytes always
 * mean equal fields. Responses repeat a few blocks; these are cached by their bytes.
 * @returns a decoder of one block; of a repeated field the last value wins
 * @throws HpackError for a block that is malformed, refers to the dynamic table or decodes to more than 1 MiB
 */
export function newStaticFieldsDecoder(): (block: Buffer) => ReadonlyMap<string, string> {
  const decoder = newFieldsDecoder({ tableBytes: 0 });
  const known = new Map<string, ReadonlyMap<string, string>>();
  return (block) => {
    if (block.length > mostKnownBytes) return decode(block);
    const key = block.toString("latin1");
    let fields = known.get(key);
    if (fields === undefined) {
      fields = decode(block);
      if (known.size >= mostKnown) known.clear();
      known.set(key, fields);
    }
    return fields;
  };

  function decode(block: Buffer): ReadonlyMap<string, string> {
    const { fields, tooLarge } = decoder.decode(block);
    if (tooLarge) throw new HpackError("response header fields exceed the limit");
    const byName = new Map<string, string>();
    for (let i = 0; i < fields.length; i += 2) byName.set(fields[i]!, fields[i + 1]!);
    return byName;
  }
}

/**
 * Encoded forms of a name: `literal` is the prefix before a literal value, `whole` maps values to the static index of name and
 * value. Characters are octets.
 */
interface EncodedName {
  readonly literal: string;
  readonly whole: ReadonlyMap<string, string>;
}

/** Bounds of the name cache: names are few, except in proxied responses. */
const mostNames = 1_000;
const mostNameBytes = 64;
const noValues: ReadonlyMap<string, string> = new Map();
const knownNames = new Map<string, EncodedName>(staticNames());

/**
 * Encodes header fields without a dynamic table and without Huffman code: as static indices where the static table has name and
 * value, as literals without indexing otherwise.
 * @param fields name, value, name, value …; names in lower case, one character for each octet
 * Source: RFC 7541
 */
export function encodeFields(fields: readonly string[]): Buffer {
  // One string converted once is cheaper than many small buffer writes.
  let block = "";
  for (let i = 0; i < fields.length; i += 2) {
    const name = encodedName(fields[i]!);
    const value = fields[i + 1]!;
    block += name.whole.get(value) ?? name.literal + integer(0, 7, value.length) + value;
  }
  return Buffer.from(block, "latin1");
}

function encodedName(name: string): EncodedName {
  let encoded = knownNames.get(name);
  if (encoded === undefined) {
    encoded = { literal: `\0${integer(0, 7, name.length)}${name}`, whole: noValues };
    if (knownNames.size < mostNames && name.length <= mostNameBytes) knownNames.set(name, encoded);
  }
  return encoded;
}

function* staticNames(): Generator<[string, EncodedName]> {
  for (const [i, { name }] of staticFields.entries()) {
    if (staticFields[i - 1]?.name === name) continue;
    const whole = staticFields.flatMap((field, at) =>
      field.name === name && field.value !== "" ? [[field.value, integer(0x80, 7, at + 1)] as const] : [],
    );
    yield [name, { literal: integer(0, 4, i + 1), whole: new Map(whole) }];
  }
}

/** Encodes an integer. @param first the bits before the prefix in the first octet */
function integer(first: number, prefixBits: number, value: number): string {
  const most = (1 << prefixBits) - 1;
  if (value < most) return String.fromCharCode(first | value);
  let octets = String.fromCharCode(first | most);
  let rest = value - most;
  for (; rest >= 128; rest = Math.floor(rest / 128)) octets += String.fromCharCode((rest % 128) | 128);
  return octets + String.fromCharCode(rest);
}

/**
 * Decoder of HPACK's Huffman code. A state machine consumes half an octet per step: its state is a node of the code tree, and
 * each step yields the next node and at most one complete octet, since no code is shorter than five bits.
 * Source: RFC 7541, section 5.2 and appendix B
 */

/**
 * Code length in bits of each octet, as base-36 digits. Lengths suffice because the code is canonical: sorted by length and then
 * by octet, each code is its predecessor plus one, shifted to its length.
 */
const codeBits =
  "dnsssssssoussuss" + // 0x00
  "ssssssusssssssss" +
  "6aacd68baa8b8666" + // space
  "555666666678f6ca" + // 0
  "d677777777777777" + // @
  "77777777878djde6" + // P
  "f565656665776665" + // `
  "67655677777fbeds" + // p
  "kmkkmmmnmnnnnnon" + // 0x80
  "oomnonnnnlmnmnno" +
  "mlkmmnnlnmmolmnn" +
  "llmlnmnnkmmmnmmn" +
  "qqkjmnmpqqqrrqop" +
  "jlqrrqrollqqsrrr" +
  "koklmllnmmppooqn" +
  "qrqqrrrrrsrrrrrq";
/** EOS, whose code is all ones; a string is padded with up to seven of its leading bits. */
const endBits = 30;
const endSymbol = 256;

interface HuffmanCode {
  readonly symbol: number;
  readonly bits: number;
  readonly code: number;
}

/** The codes of all octets and of EOS, shortest first. */
export function huffmanCodes(): HuffmanCode[] {
  const lengths = [...Array.from(codeBits, (digit) => Number.parseInt(digit, 36)), endBits];
  const sorted = lengths.map((bits, symbol) => ({ symbol, bits })).sort((a, b) => a.bits - b.bits || a.symbol - b.symbol);
  let next = 0;
  let before = 0;
  return sorted.map(({ symbol, bits }) => {
    const code = next * 2 ** (bits - before);
    next = code + 1;
    before = bits;
    return { symbol, bits, code };
  });
}

const completes = 0x100;
const rowShift = 9;
const rowSteps = 16;

/**
 * `steps` has a row for each node of the tree and a step for each half octet: the completed octet, {@link completes} if there is
 * one, and the offset of the next row. `mayEnd` is 1 for nodes at which a string may end.
 */
const { steps, mayEnd } = newMachine();

function newMachine() {
  const { tree, nodes } = newTree();
  const steps = new Int32Array(nodes * rowSteps);
  for (let at = 0; at < steps.length; at++) {
    let node = Math.floor(at / rowSteps);
    let complete = 0;
    for (let bit = 3; bit >= 0; bit--) {
      const next = tree[2 * node + ((at >> bit) & 1)]!;
      if (next < 0) complete = completes | ~next;
      node = Math.max(next, 0);
    }
    steps[at] = ((node * rowSteps) << rowShift) | complete;
  }
  // The last octet is padded with ones.
  const mayEnd = new Uint8Array(nodes);
  for (let node = 0, ones = 0; ones < 8; ones++) {
    mayEnd[node] = 1;
    node = tree[2 * node + 1]!;
  }
  return { steps, mayEnd };
}

/** @returns the two branches of each node: the number of another node, or the complement of an octet */
function newTree(): { tree: Int16Array; nodes: number } {
  const tree = new Int16Array(2 * (codeBits.length + 1));
  const root = 0;
  /** Node that EOS leads to, which must not occur in a string. Both its branches lead back to it. */
  const refused = 1;
  let nodes = 2;
  tree.fill(refused, 2 * refused, 2 * nodes);
  for (const { symbol, bits, code } of huffmanCodes()) {
    let node = root;
    for (let bit = bits - 1; bit > 0; bit--) node = tree[2 * node + ((code >> bit) & 1)] ||= nodes++;
    tree[2 * node + (code & 1)] = symbol === endSymbol ? refused : ~symbol;
  }
  return { tree, nodes };
}

/** Upper bound of the decoded size: no code is shorter than 5 bits. */
const mostOctets = (codedBytes: number): number => Math.floor((codedBytes * 8) / 5);

/** Shared: decoding is synchronous. */
const usualRoom = Buffer.allocUnsafeSlow(16 * 1024);

/**
 * @returns one character for each octet
 * @throws HpackError for truncated input, wrong padding or EOS
 */
export function decodeHuffman(bytes: Buffer, start: number, end: number): string {
  // Each step writes an octet, complete or not, so the last one may write one octet past the result.
  const room = mostOctets(end - start) + 1;
  const octets = room <= usualRoom.length ? usualRoom : Buffer.allocUnsafeSlow(room);
  let step = 0;
  let count = 0;
  for (let at = start; at < end; at++) {
    const octet = bytes[at]!;
    step = steps[(step >> rowShift) + (octet >> 4)]!;
    octets[count] = step;
    count += (step & completes) >> 8;
    step = steps[(step >> rowShift) + (octet & 15)]!;
    octets[count] = step;
    count += (step & completes) >> 8;
  }
  if (mayEnd[(step >> rowShift) / rowSteps] !== 1) throw new HpackError("invalid padding of a Huffman-coded string");
  return octets.toString("latin1", 0, count);
}

/** A malformed header block. The connection is unusable afterwards, because the tables of both sides may differ. */
export class HpackError extends Error {
  override readonly name = "HpackError";
}
