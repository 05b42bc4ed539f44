/** Allocates the IPv4 addresses of a range in order, each once until it is released. */
export class AddressPool {
  readonly #first: number;
  readonly #count: number;
  readonly #taken = new Set<string>();
  #next = 0;

  constructor(first: string, last: string) {
    this.#first = numberOf(first);
    this.#count = numberOf(last) - this.#first + 1;
  }

  /** @throws Error when all are allocated */
  take(): string {
    if (this.#taken.size >= this.#count) throw new Error(`all ${this.#count} addresses from ${textOf(this.#first)} on are taken`);
    for (;;) {
      const address = textOf(this.#first + (this.#next++ % this.#count));
      if (!this.#taken.has(address)) return this.keep(address);
    }
  }

  /** Marks an address as allocated; addresses outside the range are ignored. @returns its argument */
  keep(address: string): string {
    const place = numberOf(address) - this.#first;
    if (place >= 0 && place < this.#count) this.#taken.add(address);
    return address;
  }

  /** Returns an address to the pool; it is assigned again when the range has been gone through. */
  giveBack(address: string): void {
    this.#taken.delete(address);
  }
}

const numberOf = (address: string): number => address.split(".").reduce((number, byte) => number * 256 + Number(byte), 0);
const textOf = (number: number): string => [24, 16, 8, 0].map((bits) => (number >>> bits) & 255).join(".");
