import type { Duplex } from "node:stream";
import { takePieces } from "../http2/pieces.ts";
import { giveSlabBack, largestSlabBytes, takeSlab } from "../http2/slabs.ts";

/** Beyond so many bytes that wait, who writes more should await `drained`. */
const highWaterBytes = 64 * 1024;
const gone = "the client went away";

/**
 * What a connection sends, one answer after the other. It waits as references, so that a thousand slow watchers of one event hold one
 * event, and is copied once, when the socket takes it: into memory that is used again.
 */
export class SimpleOutput {
  readonly #socket: Duplex;
  #pieces: Buffer[] = [];
  #unsent = 0;
  #slab: Buffer | undefined;
  #isScheduled = false;
  #isClosed = false;
  #onEnd: (() => void) | undefined;
  #drained: PromiseWithResolvers<void> | undefined;

  constructor(socket: Duplex) {
    this.#socket = socket;
  }

  /** A whole answer, at once. @param head of latin1 @param onEnd when the socket has taken it */
  answer(head: string, body: Buffer, onEnd: () => void): void {
    const length = head.length + body.length;
    this.#onEnd = onEnd;
    if (length > largestSlabBytes) {
      this.push(Buffer.from(head, "latin1"));
      this.push(body);
      return;
    }
    const slab = takeSlab(length);
    body.copy(slab, slab.write(head, "latin1"));
    this.#write(slab, length);
  }

  /** Goes out at the end of the turn, with what else comes until then. @param bytes not to be changed any more */
  push(bytes: Buffer): void {
    if (this.#isClosed) return;
    this.#pieces.push(bytes);
    this.#unsent += bytes.length;
    this.#schedule();
  }

  /** Nothing more comes of this answer. @param onEnd when the socket has taken it */
  end(onEnd: () => void): void {
    this.#onEnd = onEnd;
    this.#schedule();
  }

  get isFull(): boolean {
    return this.#unsent >= highWaterBytes;
  }

  /** Resolves when there is room; rejects when the client is gone. */
  drained(): Promise<void> {
    if (this.#isClosed) return Promise.reject(new Error(gone));
    if (!this.isFull) return Promise.resolve();
    this.#drained ??= Promise.withResolvers();
    return this.#drained.promise;
  }

  /** Hands over what is there: nothing can be sent after this turn. */
  flush(): void {
    for (const piece of this.#pieces) this.#socket.write(piece);
    this.#pieces = [];
    this.#unsent = 0;
  }

  /** The client takes nothing any more. */
  close(): void {
    this.#isClosed = true;
    this.#pieces = [];
    this.#unsent = 0;
    this.#drained?.reject(new Error(gone));
    this.#drained = undefined;
  }

  #schedule(): void {
    if (this.#isScheduled || this.#slab !== undefined) return;
    this.#isScheduled = true;
    setImmediate(this.#send);
  }

  readonly #send = (): void => {
    this.#isScheduled = false;
    if (this.#isClosed || this.#slab !== undefined) return;
    if (this.#unsent === 0) {
      this.#written();
      return;
    }
    const length = Math.min(this.#unsent, largestSlabBytes);
    const slab = takeSlab(length);
    takePieces(this.#pieces, slab, 0, length);
    this.#unsent -= length;
    this.#write(slab, length);
  };

  #write(slab: Buffer, length: number): void {
    this.#slab = slab;
    this.#socket.write(slab.subarray(0, length), this.#written);
  }

  readonly #written = (): void => {
    const slab = this.#slab;
    this.#slab = undefined;
    if (slab !== undefined) giveSlabBack(slab);
    if (this.#isClosed) return;
    if (!this.isFull) {
      this.#drained?.resolve();
      this.#drained = undefined;
    }
    if (this.#unsent > 0) this.#schedule();
    else {
      const onEnd = this.#onEnd;
      this.#onEnd = undefined;
      onEnd?.();
    }
  };
}
