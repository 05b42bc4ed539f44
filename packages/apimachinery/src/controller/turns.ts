import { type Clock, realClock } from "../clock/clock.ts";
import { nextTurn } from "../clock/next-turn.ts";

/** So long work may go on before everybody else has a turn. */
const budgetMs = 50;

/** When the work of this turn of the event loop began, in real time; all that ask share it, for they share the loop. */
let began: number | undefined;

/**
 * To be asked between pieces of work that may need nothing from outside: ten thousand of them, one after the other, would
 * not let the process renew its leases or answer its probes.
 * @param clock by one that a test moves no work takes time, however busy the machine is
 * @returns what to wait for before the next piece; undefined as long as the turn is short
 */
export function othersTurn(clock: Clock): Promise<void> | undefined {
  if (clock !== realClock) return undefined;
  const now = clock.monotonic();
  if (began === undefined) {
    began = now;
    setImmediate(() => {
      began = undefined;
    });
  }
  return now - began > budgetMs ? nextTurn() : undefined;
}
