import { nextTurn } from "./next-turn.ts";

/** Work that may be interrupted wherever it yields. */
export type Steps<T> = Generator<void, T, void>;

/** Does all of it now. */
export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

/** No timer and no decision hangs on it: how long others wait at most, besides the longest step. */
const sliceMs = 10;

/**
 * Lets everybody else have a turn of the event loop whenever the work has taken its share of one.
 * @returns a promise only for work that takes longer than that
 */
export function inTurns<T>(steps: Steps<T>, now: () => number = () => performance.now()): T | Promise<T> {
  const began = now();
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    if (now() - began >= sliceMs) return nextTurn().then(() => inTurns(steps, now));
  }
}
