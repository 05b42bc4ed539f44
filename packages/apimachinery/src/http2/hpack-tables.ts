import { HpackError } from "./hpack-error.ts";

/** A field of HTTP/2's header, one character for each octet. */
export interface Field {
  readonly name: string;
  readonly value: string;
}

const named = (name: string, value = ""): Field => ({ name, value });

/** Those that everybody knows; the index of the first is 1. Source: RFC 7541, appendix A */
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

/** What a field counts in a table and in a list. Source: RFC 7541, section 4.1; RFC 9113, section 10.5.1 */
export const sizeOf = ({ name, value }: Field): number => name.length + value.length + fieldOverhead;

/** A table's bytes while nothing was agreed on. Source: RFC 9113, section 6.5.2 */
export const usualTableBytes = 4096;

/**
 * The fields that go by a number on one connection: behind those that everybody knows come those that one side sent to be
 * remembered, newest first. The oldest are forgotten when there is no room.
 * Source: RFC 7541, section 2.3
 */
export class FieldTable {
  readonly #ring: (Field | undefined)[];
  /** The ring's length is a power of two. */
  readonly #mask: number;
  readonly #mostBytes: number;
  #limit: number;
  #newest = 0;
  #count = 0;
  #bytes = 0;

  /** @param mostBytes what the other side was told that it may use */
  constructor(mostBytes: number) {
    let slots = 1;
    while (slots < mostBytes / fieldOverhead) slots *= 2;
    this.#ring = new Array(slots).fill(undefined);
    this.#mask = slots - 1;
    this.#mostBytes = mostBytes;
    this.#limit = Math.min(usualTableBytes, mostBytes);
  }

  /** @throws HpackError when there is none */
  get(index: number): Field {
    const dynamic = index - staticFields.length;
    const field = dynamic <= 0 ? staticFields[index - 1] : dynamic <= this.#count ? this.#ring[this.#slot(dynamic)] : undefined;
    if (field === undefined) throw new HpackError(`there is no header field with index ${index}`);
    return field;
  }

  /** One that is larger than the table empties it. */
  add(field: Field): void {
    const bytes = sizeOf(field);
    this.#shrinkTo(this.#limit - bytes);
    if (bytes > this.#limit) return;
    this.#newest = (this.#newest + 1) & this.#mask;
    this.#ring[this.#newest] = field;
    this.#count++;
    this.#bytes += bytes;
  }

  /** @throws HpackError for more than the other side may use */
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
      this.#ring[oldest] = undefined; // or it would be memory that nobody counts
    }
  }
}
