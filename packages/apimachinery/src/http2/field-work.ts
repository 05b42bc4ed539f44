import { loopSlice } from "../event-loop/loop-slice.ts";

/** Header fields that all connections together may decode in one event-loop iteration: a few milliseconds of work. */
const mostAtOnce = 20_000;

let read = 0;

/** Accounts decoded header fields. Two octets on the wire may decode to one field, and the client is not authenticated yet. */
export function countFields(count: number): void {
  if (read === 0) setImmediate(forget);
  read += count;
}

function forget(): void {
  read = 0;
}

/** @returns a promise to await before decoding more; undefined while the limit of this iteration is not reached */
export function afterFields(): Promise<void> | undefined {
  return read < mostAtOnce ? undefined : loopSlice.next();
}
