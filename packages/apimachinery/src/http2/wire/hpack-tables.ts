import { HpackError } from "./hpack-error.ts";

/** A header field, one character for each octet. */
export interface Field {
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
export const sizeOf = ({ name, value }: Field): number => name.length + value.length + fieldOverhead;

/** Default of SETTINGS_HEADER_TABLE_SIZE. Source: RFC 9113, section 6.5.2 */
export const usualTableBytes = 4096;

/**
 * The indexing table of one connection: the static entries, then the dynamic ones, newest first. The oldest entries are evicted
 * when the size limit is exceeded.
 * Source: RFC 7541, section 2.3
 */
export class FieldTable {
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
    if (field === undefined) throw new HpackError(`there is no header field with index ${index}`);
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
    if (bytes > this.#mostBytes) throw new HpackError(`a table of ${bytes} bytes is larger than ${this.#mostBytes}`);
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
      this.#bytes -= sizeOf(this.#ring[oldest] as Field);
      this.#ring[oldest] = undefined; // releases the field, which the size limit no longer counts
    }
  }
}
