/** How much the other side may send, of a stream or of all. Source: RFC 9113, section 5.2 */
export class ReceiveWindow {
  readonly #bytes: number;
  #left: number;
  /** And not told yet. */
  #workedOff = 0;

  constructor(bytes: number) {
    this.#bytes = bytes;
    this.#left = bytes;
  }

  /** @returns false when so much may not come */
  take(bytes: number): boolean {
    this.#left -= bytes;
    return this.#left >= 0;
  }

  /** @param bytes are worked off @returns by how much the other side is to be told that the window grew; 0: not yet */
  giveBack(bytes: number): number {
    this.#workedOff += bytes;
    if (this.#workedOff < this.#bytes / 2) return 0;
    const grown = this.#workedOff;
    this.#left += grown;
    this.#workedOff = 0;
    return grown;
  }
}
