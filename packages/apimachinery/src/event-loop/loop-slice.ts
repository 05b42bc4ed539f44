import { nextTurn } from "./next-turn.ts";

/**
 * The time slice that all long work of this process shares: together it uses at most `sliceMs` of one iteration of the event loop and
 * hands at most `sliceBytes` to sockets. Then sockets are read and timers run before the next piece of work begins, first come first
 * served. A hundred long lists delay a short request no longer than one does.
 */
export interface LoopSlice {
  /**
   * To be asked before each piece of work of a few milliseconds at most.
   * @returns undefined when it may begin now, without a wait for a microtask; or what to wait for
   */
  next(): Promise<void> | undefined;
  /** Bytes that a piece of work has handed to a socket. */
  wrote(bytes: number): void;
}

export const sliceMs = 5;
/** Encrypting and sending comes after the piece's own work, when node writes: about 2 ms for this many bytes. */
export const sliceBytes = 1024 * 1024;
/** Of a queue that never gets empty, those at its front that have been served are forgotten now and then. */
const mostServed = 1024;

/** @param now in ms @param schedule runs its argument in the next iteration of the event loop */
export function newLoopSlice(
  now: () => number = () => performance.now(),
  schedule: (run: () => void) => void = setImmediate,
): LoopSlice {
  let waiting: (() => void)[] = [];
  /** How many of `waiting` have been resolved. */
  let served = 0;
  /** When the first piece of this iteration began. */
  let began: number | undefined;
  let written = 0;

  function iterate(): void {
    began = undefined;
    if (served < waiting.length) {
      if (served > mostServed && served > waiting.length / 2) {
        waiting = waiting.slice(served);
        served = 0;
      }
      begin();
      serve(true); // at least one, whatever the clock does
    } else if (served > 0) {
      waiting = [];
      served = 0;
    }
  }

  function begin(): void {
    began = now();
    written = 0;
    schedule(iterate);
  }

  /** One after the other: each does its piece of work in the microtask between. */
  function serve(isFirst = false): void {
    const resolve = waiting[served];
    if (resolve === undefined || !(isFirst || hasRoom())) return;
    served++;
    resolve();
    queueMicrotask(() => serve());
  }

  function hasRoom(): boolean {
    return began !== undefined && written < sliceBytes && now() - began < sliceMs;
  }

  return {
    next() {
      if (began === undefined) {
        begin();
        return undefined;
      }
      if (served === waiting.length && hasRoom()) return undefined;
      return new Promise<void>((resolve) => waiting.push(resolve));
    },
    wrote(bytes) {
      written += bytes;
    },
  };
}

/** There is one event loop in the process, and so one slice. */
export const loopSlice = newLoopSlice();

/** A body that takes tens of milliseconds at each stage of its request. */
const largeBodyBytes = 256 * 1024;

/** Yields between two stages of a request with a large body. */
export async function pauseAfter(body: Buffer): Promise<void> {
  if (body.length > largeBodyBytes) await nextTurn();
}

/** A request that has taken so long yields between its stages. */
const longMs = 20;

/** Yields between the stages of a request that has turned out to be long; its object may be large and its body small. */
export function pauseWhenLong(): () => Promise<void> | undefined {
  const began = performance.now();
  return () => (performance.now() - began > longMs ? nextTurn() : undefined);
}
