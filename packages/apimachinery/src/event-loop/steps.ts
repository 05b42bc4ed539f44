import { type LoopSlice, loopSlice } from "./loop-slice.ts";

/** Work that may be interrupted wherever it yields; between two of these places it takes a few milliseconds at most. */
export type Steps<T> = Generator<void, T, void>;

/** Does all of it now. */
export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

/** Does it within the time slice that all long work shares. @returns a promise only when that is used up on the way */
export function inTurns<T>(steps: Steps<T>, slice: LoopSlice = loopSlice): T | Promise<T> {
  for (;;) {
    const turn = slice.next();
    if (turn !== undefined) return afterTurn(turn, steps, slice);
    const step = steps.next();
    if (step.done) return step.value;
  }
}

async function afterTurn<T>(turn: Promise<void>, steps: Steps<T>, slice: LoopSlice): Promise<T> {
  await turn;
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    const next = slice.next();
    if (next !== undefined) await next;
  }
}
