import { type LoopSlice, loopSlice } from "./loop-slice.ts";

/** Work that can be interrupted at its yields, which are at most a few milliseconds apart. */
export type Steps<T> = Generator<void, T, void>;

/** Runs all steps synchronously. */
export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

/** Runs the steps within the shared time slice. @returns a promise only if the slice is used up before the end */
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
