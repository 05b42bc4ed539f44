/**
 * A time slice shared by all long-running work of the process. Per event-loop iteration such work takes at most `sliceMs` and
 * writes at most `sliceBytes` to sockets; then I/O and timers run before the next piece, in FIFO order. A hundred long lists
 * delay a short request no more than one does.
 */
export interface LoopSlice {
  /**
   * To be called before each piece of work, of a few milliseconds at most.
   * @returns undefined when it may start now, without a microtask; otherwise a promise to await
   */
  next(): Promise<void> | undefined;
  /** Reports bytes written to a socket. */
  wrote(bytes: number): void;
}

export const sliceMs = 5;
/** Encryption and sending happen after the work itself: about 2 ms for this many bytes. */
export const sliceBytes = 1024 * 1024;
/** Number of served waiters after which the queue is compacted if it never becomes empty. */
const mostServed = 1024;

/**
 * @param now in ms
 * @param schedule runs its argument in the next event-loop iteration
 */
export function newLoopSlice(
  now: () => number = () => performance.now(),
  schedule: (run: () => void) => void = setImmediate,
): LoopSlice {
  let waiting: (() => void)[] = [];
  /** Number of waiters in `waiting` that were resolved. */
  let served = 0;
  /** Start of the first piece of work in this iteration. */
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
      serve(true); // at least one per iteration, regardless of the clock
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

  /** Resolves one waiter at a time, so that its work runs before the next check of the budget. */
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

/** The slice of this process. */
export const loopSlice = newLoopSlice();

/** Stages of requests that wait for their turn. */
const stages: (() => void)[] = [];

/**
 * Resolves in a later event-loop iteration, after the stages that waited before. An iteration begins no further stage once it has
 * taken `sliceMs`, so that the stages of many requests, of tens of milliseconds each, do not add up to one long iteration.
 */
function stageTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (stages.push(resolve) === 1) setImmediate(beginStages);
  });
}

function beginStages(): void {
  beginStage(performance.now());
}

function beginStage(began: number): void {
  stages[0]?.();
  // Ticks run when all microtasks have, hence after the stage.
  queueMicrotask(() =>
    process.nextTick(() => {
      stages.shift();
      if (stages.length === 0) return;
      if (performance.now() - began < sliceMs) beginStage(began);
      else setImmediate(beginStages);
    }),
  );
}

/** Size from which each stage of a request takes tens of milliseconds. */
const largeBodyBytes = 256 * 1024;

/** Yields between two stages of a request with a large body. */
export async function pauseAfter(body: Buffer): Promise<void> {
  if (body.length > largeBodyBytes) await stageTurn();
}

/** Run time from which a request yields between its stages. */
const longMs = 20;

/** Returns a function that yields once the request has run for long; a small body may refer to a large object. */
export function pauseWhenLong(): () => Promise<void> | undefined {
  const began = performance.now();
  return () => (performance.now() - began > longMs ? stageTurn() : undefined);
}
