import type { Turns } from "../../event-loop/turns.ts";

/** Header fields whose decoding takes a whole slice: a few milliseconds of work. */
const fieldsPerSlice = 20_000;

/** Accounts decoded header fields. Two octets on the wire may decode to one field, and the client is not authenticated yet. */
export class FieldWork {
  readonly #turns: Turns;

  constructor(turns: Turns) {
    this.#turns = turns;
  }

  add(count: number): void {
    this.#turns.charge(count / fieldsPerSlice);
  }

  /** @returns a promise to await before decoding more; undefined while the fields of this iteration have not used up its slice */
  wait(): Promise<void> | undefined {
    return this.#turns.isCharged ? this.#turns.next() : undefined;
  }
}
