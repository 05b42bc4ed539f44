import { atOnce, type Steps } from "./steps.ts";

/** Maximum time in ms that long work takes of each event-loop iteration before I/O and timers run. */
export const sliceMs = 5;

/** Bytes whose encryption and sending, or receiving and decryption, after the work itself, count as one slice. */
const bytesPerSlice = 1024 * 1024;
/** Bytes of JSON that are decoded, checked or encoded in about one slice. */
const workBytesPerSlice = 64 * 1024;
/** After a piece of work of this length, the next one waits for a full iteration of the event loop. */
const longPieceMs = 4 * sliceMs;
/** Pieces that process at most this many bytes are short: they take a small part of `sliceMs`. */
const shortBytes = 4 * 1024;
/** Steps of work given as short that are scheduled as short; real short work has only a few. */
const shortSteps = 8;
/** Number of short pieces served before the next long one. */
const shortPerLong = 8;
/** Number of served waiters after which the queue is compacted if it never becomes empty. */
const mostServed = 1024;

/** What ends work whose result nobody waits for any more: an AbortSignal, or the context of a request. */
export type Cancellation = Pick<AbortSignal, "throwIfAborted">;

/** Long work in turns; `Turns` describes the methods. */
export interface LongWork {
  next(sizeBytes?: number): Promise<void> | undefined;
  run<T>(steps: Steps<T>): T | Promise<T>;
}

/** Runs long work in `turns`; at once where a caller has none. */
export function runSteps<T>(turns: Pick<LongWork, "run"> | undefined, steps: Steps<T>): T | Promise<T> {
  return turns === undefined ? atOnce(steps) : turns.run(steps);
}

interface Run {
  readonly sizeBytes: number;
  /** Number of steps that may be scheduled as short. */
  readonly mostShort: number;
  readonly request: Cancellation | undefined;
}

/**
 * Schedules long work on the event loop. A program creates one and passes it to all its parts. Per iteration, their work takes at most
 * `sliceMs` in total; then I/O and timers run before the next piece, in the order of the requests. A hundred long lists
 * delay a short request no more than one does. Pieces known to be short have a separate queue: a write has a dozen of them, and
 * would otherwise wait a dozen times for all others, which lease renewals cannot afford when CPU time is scarce.
 */
export class Turns {
  readonly #now: () => number;
  readonly #schedule: (run: () => void) => void;
  readonly #short = new Waiters();
  readonly #others = new Waiters();
  /** Number of short pieces served since the last long one. */
  #shortInRow = 0;
  /** Start time of the first piece of work in this iteration. */
  #began: number | undefined;
  /** Charged to this iteration, in ms. */
  #charged = 0;
  /** True when I/O or a timer began the slice: `setImmediate` then still runs in the same iteration. */
  #isFirst = false;

  /**
   * @param now in ms
   * @param schedule runs its argument in the next event-loop iteration
   */
  constructor(
    now: () => number = () => performance.now(),
    schedule: (run: () => void) => void = (run) => void setImmediate(run),
  ) {
    this.#now = now;
    this.#schedule = schedule;
  }

  /**
   * Must be called before each piece of work, of a few milliseconds at most.
   * @param sizeBytes bytes that the piece works on, when known: short pieces are served first; of several long ones that call this in
   * the same turn, before the first of them has begun, each gets a separate turn
   * @returns undefined when it may start now, without a microtask; otherwise a promise to await
   */
  next(sizeBytes = 0): Promise<void> | undefined {
    return this.#next(sizeBytes, sizeBytes > 0 && sizeBytes <= shortBytes);
  }

  #next(sizeBytes: number, isShort: boolean): Promise<void> | undefined {
    const overtakes = this.#short.isEmpty && (isShort || this.#others.isEmpty);
    if (this.#began === undefined) this.#begin();
    else if (!overtakes || !this.#hasRoom()) return (isShort ? this.#short : this.#others).add();
    if (sizeBytes > workBytesPerSlice) this.charge(sizeBytes / workBytesPerSlice);
    return undefined;
  }

  /**
   * Runs the steps in turns.
   * @param sizeBytes size of the data that they process, when known; steps beyond the eighth count as long regardless
   * @param request asked after each wait: the steps of a client that has gone would take turns from others
   * @returns a promise only if they do not end within this turn; it rejects with the reason of the request's end
   */
  run<T>(steps: Steps<T>, sizeBytes = 0, request?: Cancellation): T | Promise<T> {
    return this.#run(steps, { sizeBytes, mostShort: shortSteps, request });
  }

  /**
   * For long work that requests of all clients wait for, like an event of the watch that all caches share: its pieces are served with the
   * short ones. At most a few pieces may wait here at a time.
   */
  readonly ahead: LongWork = {
    next: (sizeBytes = 0) => this.#next(sizeBytes, true),
    run: (steps) => this.#run(steps, { sizeBytes: shortBytes, mostShort: Number.POSITIVE_INFINITY, request: undefined }),
  };

  #run<T>(steps: Steps<T>, how: Run): T | Promise<T> {
    for (let taken = 0; ; taken++) {
      const turn = this.next(taken < how.mostShort ? how.sizeBytes : 0);
      if (turn !== undefined) return this.#goOn(turn, steps, how, taken);
      const step = steps.next();
      if (step.done) return step.value;
    }
  }

  /** Charges this iteration for work outside of the scheduled pieces. @param part fraction of a slice */
  charge(part: number): void {
    if (this.#began === undefined) this.#begin();
    this.#charged += part * sliceMs;
  }

  /** True when at least one slice was charged in this iteration. */
  get isCharged(): boolean {
    return this.#began !== undefined && this.#charged >= sliceMs;
  }

  /** Charges the encryption of bytes that were written to a socket, or the decryption of bytes that were read. */
  transferred(bytes: number): void {
    this.charge(bytes / bytesPerSlice);
  }

  async #goOn<T>(turn: Promise<void>, steps: Steps<T>, { sizeBytes, mostShort, request }: Run, before: number): Promise<T> {
    await turn;
    request?.throwIfAborted();
    for (let taken = before + 1; ; taken++) {
      const step = steps.next();
      if (step.done) return step.value;
      const next = this.next(taken < mostShort ? sizeBytes : 0);
      if (next === undefined) continue;
      await next;
      request?.throwIfAborted();
    }
  }

  #begin(isFirst = true): void {
    this.#began = this.#now();
    this.#charged = 0;
    this.#isFirst = isFirst;
    this.#schedule(this.#iterate);
  }

  readonly #iterate = (): void => {
    if (this.#isFirst && this.#began !== undefined && this.#now() - this.#began > longPieceMs) {
      this.#isFirst = false;
      this.#schedule(this.#iterate);
      return;
    }
    this.#began = undefined;
    this.#short.compact();
    this.#others.compact();
    if (this.#short.isEmpty && this.#others.isEmpty) return;
    this.#begin(false);
    this.#serve(); // at least one per iteration, regardless of the clock
  };

  #serve(): void {
    const isShort = !this.#short.isEmpty && (this.#others.isEmpty || this.#shortInRow < shortPerLong);
    this.#shortInRow = isShort ? this.#shortInRow + 1 : 0;
    if (!(isShort ? this.#short : this.#others).serve()) return;
    queueMicrotask(this.#afterPiece);
  }

  /** Ticks run when all microtasks have, hence after the work of the waiter that was served last. */
  readonly #afterPiece = (): void => process.nextTick(this.#serveMore);

  readonly #serveMore = (): void => {
    if (this.#hasRoom()) this.#serve();
  };

  #hasRoom(): boolean {
    return this.#began !== undefined && this.#now() - this.#began + this.#charged < sliceMs;
  }
}

/** Turns that never wait: for programs whose outcome must not depend on the speed of the machine, like tests in virtual time. */
export function newUnlimitedTurns(): Turns {
  return new Turns(
    () => 0,
    (run) => run(),
  );
}

/** Pieces of work that wait, first come first served. */
class Waiters {
  #waiting: (() => void)[] = [];
  /** Number of waiters in `waiting` that were served. */
  #served = 0;

  get isEmpty(): boolean {
    return this.#served === this.#waiting.length;
  }

  add(): Promise<void> {
    return new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /** Serves the oldest waiter. @returns false when there is none */
  serve(): boolean {
    const resolve = this.#waiting[this.#served];
    if (resolve === undefined) return false;
    this.#served++;
    resolve();
    return true;
  }

  /** Removes served waiters from time to time; doing so each time would copy the waiting ones. */
  compact(): void {
    if (this.#served === 0) return;
    if (!this.isEmpty && (this.#served <= mostServed || this.#served <= this.#waiting.length / 2)) return;
    this.#waiting = this.isEmpty ? [] : this.#waiting.slice(this.#served);
    this.#served = 0;
  }
}

/**
 * Requests that may start in one iteration. Most of their work follows in microtasks of the same iteration, which the turns'
 * clock does not measure.
 */
const requestsPerSlice = 16;
/** Places that requests take at most among the waiting short pieces, which must not wait for thousands of requests. */
const mostPlaces = shortPerLong;

/**
 * Admits requests. Waiting requests are served round-robin by client, so that a client with many connections does not delay
 * others. A request begins as a short piece: what is long in it waits for turns of its own.
 */
export class RequestGate {
  readonly #turns: Turns;
  /** Waiting requests by client; the first client is served next. */
  readonly #waiting = new Map<string, (() => void)[]>();
  #size = 0;
  /** Places reserved for waiting requests. Which one starts is decided when a place comes up. */
  #places = 0;

  /** @param turns charged with a fraction of a slice for each admitted request */
  constructor(turns: Turns) {
    this.#turns = turns;
  }

  /**
   * @param client requests of one client are served in order
   * @returns a promise to await before the request is served; undefined when it may start now
   */
  enter(client: string): Promise<void> | undefined {
    if (this.#size === 0) {
      const place = this.#turns.next(shortBytes);
      if (place === undefined) return void this.#turns.charge(1 / requestsPerSlice);
      this.#take(place);
    }
    const requests = this.#waiting.get(client) ?? [];
    this.#waiting.set(client, requests);
    this.#size++;
    const allowed = new Promise<void>((resolve) => requests.push(resolve));
    this.#reserve();
    return allowed;
  }

  #take(place: Promise<void>): void {
    this.#places++;
    void place.then(() => {
      this.#places--;
      this.#begin();
      this.#reserve();
    });
  }

  #reserve(): void {
    while (this.#places < Math.min(this.#size, mostPlaces)) {
      const place = this.#turns.next(shortBytes);
      if (place === undefined) this.#begin();
      else this.#take(place);
    }
  }

  #begin(): void {
    const [first] = this.#waiting;
    if (first === undefined) return;
    const [client, requests] = first;
    const request = requests.shift();
    this.#waiting.delete(client);
    if (requests.length > 0) this.#waiting.set(client, requests);
    this.#size--;
    this.#turns.charge(1 / requestsPerSlice);
    request?.();
  }
}
