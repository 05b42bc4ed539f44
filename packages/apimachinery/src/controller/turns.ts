import { type Clock, realClock } from "../clock/clock.ts";
import { loopSlice } from "../event-loop/loop-slice.ts";

/**
 * To be asked between pieces of work that may need nothing from outside: ten thousand of them in a row would keep the process from
 * renewing its leases and answering its probes.
 * @param clock a fake clock never yields, so that a test's number of iterations does not depend on the machine
 * @returns what to wait for before the next piece; undefined when it may begin now
 */
export function othersTurn(clock: Clock): Promise<void> | undefined {
  return clock === realClock ? loopSlice.next() : undefined;
}
