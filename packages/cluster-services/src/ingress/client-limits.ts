/** Counts the connections of each client. */
export class ClientLimits {
  readonly #most: { readonly perClient: number; readonly together: number };
  readonly #open = new Map<string, number>();
  #together = 0;

  constructor(most: { readonly perClient: number; readonly together: number }) {
    this.#most = most;
  }

  /** @returns false beyond a limit; else `left` is to be called once when the connection ends */
  enter(address: string): boolean {
    const open = this.#open.get(address) ?? 0;
    if (open >= this.#most.perClient || this.#together >= this.#most.together) return false;
    this.#open.set(address, open + 1);
    this.#together++;
    return true;
  }

  left(address: string): void {
    const open = this.#open.get(address) ?? 0;
    if (open <= 1) this.#open.delete(address);
    else this.#open.set(address, open - 1);
    this.#together--;
  }
}
