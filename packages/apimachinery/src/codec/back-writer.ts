/**
 * Writes a protobuf message backwards, so that the length of a nested message is known when its prefix is written; no
 * sizing pass is needed. Callers write fields, list items and the parts of a field in reverse order: value, length, tag.
 */
export class BackWriter {
  #buffer = Buffer.allocUnsafe(firstBytes);
  /** Offset of the first written byte. */
  #start = firstBytes;

  /** Number of bytes written. The difference of two marks is the length of what was written in between. */
  get mark(): number {
    return this.#buffer.length - this.#start;
  }

  /** Varint of an unsigned number below 2^32. */
  uint32(value: number): void {
    const start = this.#room(5);
    const buffer = this.#buffer;
    if (value < 0x80) {
      buffer[start - 1] = value;
      this.#start = start - 1;
      return;
    }
    const size = value < 0x4000 ? 2 : value < 0x200000 ? 3 : value < 0x10000000 ? 4 : 5;
    let at = start - size;
    this.#start = at;
    let rest = value;
    for (; at < start - 1; at++) {
      buffer[at] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    buffer[at] = rest;
  }

  /** Varint of a signed number in 64-bit two's complement. */
  int64(value: number | bigint): void {
    if (typeof value === "number" && value >= 0 && value <= 0xffffffff) {
      this.uint32(value);
      return;
    }
    let rest = BigInt.asUintN(64, BigInt(value));
    const bytes: number[] = [];
    for (; rest >= 0x80n; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
    bytes.push(Number(rest));
    this.bytes(bytes);
  }

  bool(value: boolean): void {
    this.uint32(value ? 1 : 0);
  }

  double(value: number): void {
    this.#start = this.#buffer.writeDoubleLE(value, this.#room(8) - 8) - 8;
  }

  bytes(bytes: ArrayLike<number>): void {
    const start = this.#room(bytes.length) - bytes.length;
    this.#buffer.set(bytes, start);
    this.#start = start;
  }

  /** UTF-8 text with a length prefix. */
  string(text: string): void {
    if (text.length <= shortText && this.#short(text)) return;
    const size = Buffer.byteLength(text);
    const start = this.#room(size) - size;
    this.#buffer.write(text, start, size, "utf8");
    this.#start = start;
    this.uint32(size);
  }

  /** Writes the text if it is ASCII, else returns false. For short texts this loop is faster than a call into native code. */
  #short(text: string): boolean {
    const { length } = text;
    const start = this.#room(length + 1) - length;
    const buffer = this.#buffer;
    for (let i = 0; i < length; i++) {
      const code = text.charCodeAt(i);
      if (code > 0x7f) return false;
      buffer[start + i] = code;
    }
    buffer[start - 1] = length;
    this.#start = start - 1;
    return true;
  }

  /** Returns a copy of the written bytes and resets the writer. */
  finish(): Buffer {
    const bytes = Buffer.from(this.#buffer.subarray(this.#start));
    if (this.#buffer.length > mostKeptBytes) this.#buffer = Buffer.allocUnsafe(firstBytes);
    this.reset();
    return bytes;
  }

  /** Discards everything written, e.g. after an encoding error. */
  reset(): void {
    this.#start = this.#buffer.length;
  }

  /** Grows the buffer if fewer than `size` bytes are free. @returns `#start` */
  #room(size: number): number {
    if (this.#start < size) {
      const written = this.mark;
      const grown = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, written + size));
      this.#buffer.copy(grown, grown.length - written, this.#start);
      this.#start = grown.length - written;
      this.#buffer = grown;
    }
    return this.#start;
  }
}

const firstBytes = 16 * 1024;
/** A larger buffer is not kept for the next message. */
const mostKeptBytes = 16 * 1024 * 1024;
/** Maximum length for `#short`; below 128, so that the length prefix is a single byte. */
const shortText = 48;
