/**
 * Shares the event loop between answers that take long: together they use at most `sliceMs` of one turn of the loop,
 * then everything else (requests that come in, heartbeats, timers) has its turn, then the next of them, first come
 * first served. A hundred long lists so delay a short request no longer than one does.
 */
export interface Turns {
  /**
   * Asked before each piece of work of a few milliseconds at most.
   * @returns undefined when it may begin now, without a wait for a microtask; or what to wait for.
   */
  take(): Promise<void> | undefined;
}

const sliceMs = 5;

const nextTurn = (turn: () => void): void => void setImmediate(turn);

export function newTurns(now: () => number = () => performance.now(), next: (turn: () => void) => void = nextTurn): Turns {
  const waiting: (() => void)[] = [];
  /** When the first piece of this turn of the loop began. */
  let began: number | undefined;

  function turn(): void {
    began = undefined;
    const resolve = waiting.shift();
    if (resolve === undefined) return;
    begin();
    resolve();
  }

  function begin(): void {
    began = now();
    next(turn);
  }

  return {
    take() {
      if (began === undefined) {
        begin();
        return undefined;
      }
      if (now() - began < sliceMs) return undefined;
      return new Promise<void>((resolve) => waiting.push(resolve));
    },
  };
}

/** Of this process: there is one event loop. */
export const turns = newTurns();
