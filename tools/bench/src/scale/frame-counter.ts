const prefixBytes = 4;

/** Counts the frames of a protobuf stream, each a big-endian length of four bytes and as many bytes, without keeping them. */
export class FrameCounter {
  /** Bytes of the current frame that have not arrived. */
  #left = 0;
  #length = 0;
  /** Bytes of the current length that have arrived. */
  #prefix = 0;

  /** @returns the number of frames that end with this piece */
  push(piece: Buffer): number {
    let ended = 0;
    for (let at = 0; at < piece.length; ) {
      if (this.#left > 0) {
        const taken = Math.min(this.#left, piece.length - at);
        this.#left -= taken;
        at += taken;
        if (this.#left === 0) ended++;
        continue;
      }
      this.#length = this.#length * 256 + piece[at++]!;
      if (++this.#prefix < prefixBytes) continue;
      this.#left = this.#length;
      this.#length = 0;
      this.#prefix = 0;
      if (this.#left === 0) ended++;
    }
    return ended;
  }
}
