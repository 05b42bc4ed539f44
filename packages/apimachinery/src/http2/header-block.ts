import { tooMuch } from "./connection-error.ts";

const mostParts = 500;

/** Header fields that come in several frames. */
export class HeaderBlock {
  readonly stream: number;
  /** Of the first frame. */
  readonly flags: number;
  readonly since = performance.now();
  readonly #mostBytes: number;
  readonly #parts: Buffer[] = [];
  #size = 0;

  constructor(stream: number, flags: number, mostBytes: number) {
    this.stream = stream;
    this.flags = flags;
    this.#mostBytes = mostBytes;
  }

  /** @throws ConnectionError when it becomes too large to be read */
  add(part: Buffer): void {
    this.#parts.push(part);
    this.#size += part.length;
    if (this.#parts.length > mostParts || this.#size > this.#mostBytes) throw tooMuch("headers without end");
  }

  bytes(): Buffer {
    return Buffer.concat(this.#parts, this.#size);
  }
}
