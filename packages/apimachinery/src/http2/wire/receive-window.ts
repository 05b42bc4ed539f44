/** Flow-control window of received data, of a stream or of the connection. Source: RFC 9113, section 5.2 */
export class ReceiveWindow {
  readonly #bytes: number;
  #left: number;
  /** Consumed bytes that were not yet returned by a WINDOW_UPDATE. */
  #workedOff = 0;

  constructor(bytes: number) {
    this.#bytes = bytes;
    this.#left = bytes;
  }

  /** Accounts received data. @returns false when it exceeds the window */
  take(bytes: number): boolean {
    this.#left -= bytes;
    return this.#left >= 0;
  }

  /**
   * @param bytes consumed by the application
   * @returns the increment to send as WINDOW_UPDATE; 0 until more than half of the window was consumed
   */
  giveBack(bytes: number): number {
    this.#workedOff += bytes;
    if (this.#workedOff <= this.#bytes / 2) return 0;
    const grown = this.#workedOff;
    this.#left += grown;
    this.#workedOff = 0;
    return grown;
  }
}
