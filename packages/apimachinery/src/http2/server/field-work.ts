import { loopSlice } from "../../event-loop/loop-slice.ts";

/** Header fields that all connections of a server may decode in one event-loop iteration: a few milliseconds of work. */
const mostAtOnce = 20_000;

/** Accounts decoded header fields. Two octets on the wire may decode to one field, and the client is not authenticated yet. */
export class FieldWork {
  #count = 0;

  add(count: number): void {
    if (this.#count === 0)
      setImmediate(() => {
        this.#count = 0;
      });
    this.#count += count;
  }

  /** @returns a promise to await before decoding more; undefined while the limit of this iteration is not reached */
  wait(): Promise<void> | undefined {
    return this.#count < mostAtOnce ? undefined : loopSlice.next();
  }
}
