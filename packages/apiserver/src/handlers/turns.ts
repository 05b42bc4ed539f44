import { nextTurn } from "@coxswain/apimachinery/clock/next-turn";

/**
 * Shares the event loop between answers that take long: together they use at most `sliceMs` of one turn of the loop and
 * hand at most `sliceBytes` to their sockets, then everything else (requests that come in, heartbeats, timers) has its
 * turn, then the next of them, first come first served. A hundred long lists so delay a short request no longer than one
 * does.
 */
export interface Turns {
  /**
   * Asked before each piece of work of a few milliseconds at most.
   * @returns undefined when it may begin now, without a wait for a microtask; or what to wait for.
   */
  take(): Promise<void> | undefined;
  /** Told of each piece that goes to a socket. */
  gave(bytes: number): void;
}

const sliceMs = 5;
/** Encrypting and sending comes after the piece's own work, when node writes: about 2 ms for this many bytes. */
const sliceBytes = 1024 * 1024;

export function newTurns(now: () => number = () => performance.now(), next: (turn: () => void) => void = setImmediate): Turns {
  let waiting: (() => void)[] = [];
  /** Those before it have had their turn. */
  let served = 0;
  /** When the first piece of this turn of the loop began. */
  let began: number | undefined;
  let given = 0;

  function turn(): void {
    began = undefined;
    if (served < waiting.length) {
      begin();
      serve();
    } else if (served > 0) {
      waiting = [];
      served = 0;
    }
  }

  function begin(): void {
    began = now();
    given = 0;
    next(turn);
  }

  /** One after the other: each does its piece of work in the microtask between. */
  function serve(): void {
    const resolve = waiting[served];
    if (resolve === undefined || !hasRoom()) return;
    served++;
    resolve();
    queueMicrotask(serve);
  }

  function hasRoom(): boolean {
    return began !== undefined && given < sliceBytes && now() - began < sliceMs;
  }

  return {
    take() {
      if (began === undefined) {
        begin();
        return undefined;
      }
      if (served === waiting.length && hasRoom()) return undefined;
      return new Promise<void>((resolve) => waiting.push(resolve));
    },
    gave(bytes) {
      given += bytes;
    },
  };
}

/** A body that takes tens of milliseconds at each stage of its request. */
const largeBodyBytes = 256 * 1024;

/** Lets everybody else have a turn between two stages of a request with a large body. */
export async function pauseAfter(body: Buffer): Promise<void> {
  if (body.length > largeBodyBytes) await nextTurn();
}

/** How long a request takes of which it is worthwhile to interrupt the work. */
const longMs = 20;

/** The same between the stages of a request that has turned out to be long; its object may be large and its body small. */
export function pauseWhenLong(): () => Promise<void> | undefined {
  const began = performance.now();
  return () => (performance.now() - began > longMs ? nextTurn() : undefined);
}

/** Of this process: there is one event loop. */
export const turns = newTurns();
