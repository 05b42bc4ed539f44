const smallBytes = 1024;
const roomBytes = 4096;

/**
 * Accumulates received chunks in about as much memory as they have bytes. A client chooses the size of its chunks: a Buffer for
 * each of a million chunks of one byte would take 200 times as much.
 */
export class GatheredBytes {
  #parts: Buffer[] = [];
  #size = 0;
  /** Buffer into which small chunks are copied. */
  #room = Buffer.alloc(0);
  #used = 0;

  get size(): number {
    return this.#size;
  }

  /** @param piece kept by reference when it is the first or has at least 1024 bytes; copied otherwise */
  push(piece: Buffer): void {
    const isFirst = this.#size === 0;
    this.#size += piece.length;
    if (isFirst || piece.length >= smallBytes) {
      this.#seal();
      this.#parts.push(piece);
      return;
    }
    if (piece.length > this.#room.length - this.#used) {
      this.#seal();
      this.#room = Buffer.allocUnsafeSlow(roomBytes);
    }
    this.#used += piece.copy(this.#room, this.#used);
  }

  /** Returns everything accumulated so far and leaves the object empty. */
  take(): Buffer {
    this.#seal();
    const all = this.#parts.length === 1 ? (this.#parts[0] as Buffer) : Buffer.concat(this.#parts, this.#size);
    this.#parts = [];
    this.#size = 0;
    return all;
  }

  #seal(): void {
    if (this.#used === 0) return;
    this.#parts.push(this.#room.subarray(0, this.#used));
    this.#room = this.#room.subarray(this.#used);
    this.#used = 0;
  }
}
