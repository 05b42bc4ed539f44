import { HpackError } from "./hpack-error.ts";
import { type Field, FieldTable, sizeOf, usualTableBytes } from "./hpack-tables.ts";
import { decodeHuffman } from "./huffman.ts";

export interface FieldsDecoderOptions {
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
  if (isResize(first)) throw new HpackError("the size of the table changes where it may not");
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
    return this.#block[this.#at] as number;
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
    throw new HpackError("a number in a block of header fields is too large");
  }

  #octet(): number {
    const octet = this.#block[this.#at++];
    if (octet === undefined) throw cutOff();
    return octet;
  }
}

/** Scale of the fifth and last continuation octet that is accepted: more than any index or length needs. */
const largestScale = 128 ** 4;

const cutOff = (): HpackError => new HpackError("a block of header fields is cut off");
