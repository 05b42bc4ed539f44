import { type Clock, realClock } from "../clock/clock.ts";
import { loopSlice } from "../event-loop/loop-slice.ts";

/**
 * To be called between pieces of work that may complete without I/O: thousands of them in a row would block lease renewals and
 * health probes.
 * @param clock a fake clock never yields, so that the number of iterations in tests does not depend on the machine
 * @returns a promise to await before the next piece; undefined while the time slice is not used up
 */
export function othersTurn(clock: Clock): Promise<void> | undefined {
  return clock === realClock ? loopSlice.next() : undefined;
}
