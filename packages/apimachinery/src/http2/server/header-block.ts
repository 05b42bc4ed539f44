import { tooMuch } from "../wire/connection-error.ts";

const mostParts = 500;
/** Upper bound over all connections of this process: clients are not authenticated before their headers are complete. */
const mostUnfinishedBytes = 64 * 1024 * 1024;

/** Incomplete blocks, oldest first. */
const unfinished = new Set<HeaderBlock>();
let unfinishedBytes = 0;

/** A header block that arrives as HEADERS and CONTINUATION frames. */
export class HeaderBlock {
  readonly stream: number;
  /** Flags of the HEADERS frame. */
  readonly flags: number;
  readonly since = performance.now();
  readonly #mostBytes: number;
  readonly #onTooMany: () => void;
  #parts: Buffer[] = [];
  #size = 0;

  /** @param onTooMany called when the process-wide limit is exceeded and this block is the oldest; its connection has to close */
  constructor(stream: number, flags: number, mostBytes: number, onTooMany: () => void) {
    this.stream = stream;
    this.flags = flags;
    this.#mostBytes = mostBytes;
    this.#onTooMany = onTooMany;
    unfinished.add(this);
  }

  /** Appends the payload of a frame. @throws ConnectionError above the limits on frames or bytes */
  add(part: Buffer): void {
    this.#parts.push(part);
    this.#size += part.length;
    unfinishedBytes += part.length;
    if (this.#parts.length > mostParts || this.#size > this.#mostBytes) throw tooMuch("headers without end");
    for (const block of unfinished) {
      if (unfinishedBytes <= mostUnfinishedBytes) return;
      block.drop();
      block.#onTooMany();
    }
  }

  /** Returns the complete block, after END_HEADERS. */
  take(): Buffer {
    const bytes = Buffer.concat(this.#parts, this.#size);
    this.drop();
    return bytes;
  }

  /** Discards the block and releases its share of the process-wide limit. Idempotent. */
  drop(): void {
    if (!unfinished.delete(this)) return;
    unfinishedBytes -= this.#size;
    this.#parts = [];
    this.#size = 0;
  }
}
