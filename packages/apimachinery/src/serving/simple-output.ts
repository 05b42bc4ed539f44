import type { Duplex } from "node:stream";
import { giveSlabBack, largestSlabBytes, takePieces, takeSlab } from "../transport/http2/wire/buffers.ts";

/** High-water mark of queued bytes; above it writers should await `drained`. */
const highWaterBytes = 64 * 1024;
const gone = "the client disconnected";

/**
 * Output of an HTTP/1.1 connection, one response after the other. Data is queued by reference, so that a thousand slow watchers
 * of one event share its bytes, and copied once, into a pooled buffer, when the socket accepts it.
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

  /** Writes a complete response. @param head latin1 @param onEnd called when the socket has accepted it */
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

  /** Queues data, which is written at the end of the event-loop turn. @param bytes must not be modified any more */
  push(bytes: Buffer): void {
    if (this.#isClosed) return;
    this.#pieces.push(bytes);
    this.#unsent += bytes.length;
    this.#schedule();
  }

  /** Ends the response. @param onEnd called when the socket has accepted it */
  end(onEnd: () => void): void {
    this.#onEnd = onEnd;
    this.#schedule();
  }

  get isFull(): boolean {
    return this.#unsent >= highWaterBytes;
  }

  /** Resolves when the queue is below the high-water mark; rejects when the client has disconnected. */
  drained(): Promise<void> {
    if (this.#isClosed) return Promise.reject(new Error(gone));
    if (!this.isFull) return Promise.resolve();
    this.#drained ??= Promise.withResolvers();
    return this.#drained.promise;
  }

  /** Writes queued data immediately: nothing can be sent after this event-loop turn. */
  flush(): void {
    for (const piece of this.#pieces) this.#socket.write(piece);
    this.#pieces = [];
    this.#unsent = 0;
  }

  /** Discards queued data: the client has disconnected. */
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
