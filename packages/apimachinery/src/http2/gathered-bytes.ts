const smallBytes = 1024;
const roomBytes = 4096;

/**
 * What a client sends in pieces of its own choosing, in about as much memory as it has bytes: a Buffer for each of a million
 * pieces of one byte would be 200 times as large.
 */
export class GatheredBytes {
  #parts: Buffer[] = [];
  #size = 0;
  /** Small pieces are copied to it. */
  #room = Buffer.alloc(0);
  #used = 0;

  get size(): number {
    return this.#size;
  }

  /** @param piece held, when it is the first or not small */
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

  /** All of it; nothing is left. */
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
