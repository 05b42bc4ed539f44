import { tooMuch } from "./connection-error.ts";

const mostParts = 500;
/** Of all blocks in this process: nobody has to say who he is before his headers are whole. */
const mostUnfinishedBytes = 64 * 1024 * 1024;

/** In the order in which they began. */
const unfinished = new Set<HeaderBlock>();
let unfinishedBytes = 0;

/** Header fields that come in several frames. */
export class HeaderBlock {
  readonly stream: number;
  /** Of the first frame. */
  readonly flags: number;
  readonly since = performance.now();
  readonly #mostBytes: number;
  readonly #onTooMany: () => void;
  #parts: Buffer[] = [];
  #size = 0;

  /** @param onTooMany of all that are unfinished this one has been so for longest, and has to go */
  constructor(stream: number, flags: number, mostBytes: number, onTooMany: () => void) {
    this.stream = stream;
    this.flags = flags;
    this.#mostBytes = mostBytes;
    this.#onTooMany = onTooMany;
    unfinished.add(this);
  }

  /** @throws ConnectionError when it becomes too large to be read */
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

  /** It is whole. */
  take(): Buffer {
    const bytes = Buffer.concat(this.#parts, this.#size);
    this.drop();
    return bytes;
  }

  /** Nobody waits for the rest any more. */
  drop(): void {
    if (!unfinished.delete(this)) return;
    unfinishedBytes -= this.#size;
    this.#parts = [];
    this.#size = 0;
  }
}
