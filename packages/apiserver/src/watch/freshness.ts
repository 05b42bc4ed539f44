import { tooLargeResourceVersion } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";

/** How far the changes of all caches were applied; implemented by the multiplexer. */
interface AppliedChanges {
  /** Every change up to here is in the caches. */
  readonly revision: number;
  /** Counts the times that the watch was lost; a wait that began before does not count. */
  readonly generation: number;
  /** Resolves when what is stored now was applied; with undefined when it was not in time. */
  fresh(): Promise<number | undefined>;
  /** @returns whether the revision was applied within the time */
  reached(revision: number, timeoutMs: number): Promise<boolean>;
  /** etcd's revision. */
  storedRevision(): Promise<number>;
}

interface FreshnessOptions {
  readonly multiplexer: AppliedChanges;
  /** Revision of the list that the cache was loaded from. */
  listed(): number;
  /** How long a read waits for a revision that has not arrived, and for the initial list. */
  readonly timeoutMs: number;
  readonly clock: Clock;
}

/** Whether a cache is loaded, and how recent a state a read may rely on. */
export class Freshness {
  readonly #options: FreshnessOptions;
  #isReady = false;
  #loaded = Promise.withResolvers<void>();

  constructor(options: FreshnessOptions) {
    this.#options = options;
  }

  get isReady(): boolean {
    return this.#isReady;
  }

  /** Resolves when the list is loaded; the promise of an earlier call that still waits resolves with it. */
  whenReady(): Promise<void> {
    return this.#loaded.promise;
  }

  setReady(): void {
    this.#isReady = true;
    this.#loaded.resolve();
  }

  /** The state is not valid any more, until `setReady`. */
  invalidate(): void {
    // While the cache is not ready, callers already wait on the existing promise; keep it.
    if (this.#isReady) this.#loaded = Promise.withResolvers();
    this.#isReady = false;
  }

  /** Ends updates. `whenReady` keeps its state, so that no caller waits for ever. */
  end(): void {
    this.#isReady = false;
  }

  /** The cache's revision: it holds every change up to here. */
  revision(): number {
    return Math.max(this.#options.multiplexer.revision, this.#options.listed());
  }

  /** Waits, for a limited time, for the list. @returns whether the cache is ready */
  async readyInTime(): Promise<boolean> {
    if (this.#isReady) return true;
    const { clock, timeoutMs } = this.#options;
    let timer: { cancel(): void } | undefined;
    const late = new Promise<void>((resolve) => {
      timer = clock.after(timeoutMs, resolve);
    });
    await Promise.race([this.#loaded.promise, late]);
    timer?.cancel();
    return this.#isReady;
  }

  /** Resolves true when everything written before the call is in the cache. */
  async upToDate(): Promise<boolean> {
    if (!this.#isReady && !(await this.readyInTime())) return false;
    const { multiplexer } = this.#options;
    const { generation } = multiplexer;
    return (await multiplexer.fresh()) !== undefined && this.#isReady && generation === multiplexer.generation;
  }

  /**
   * Waits until the state is not older than `wanted`.
   * @returns false when the store has to be read instead @throws Timeout when the revision does not arrive in time
   */
  async notOlderThan(wanted: number): Promise<boolean> {
    if (!this.#isReady && !(await this.readyInTime())) return false;
    if (wanted <= this.revision()) return true;
    if (wanted <= ((await this.upToDate()) ? this.revision() : 0)) return true;
    if (await this.#options.multiplexer.reached(wanted, this.#options.timeoutMs)) return this.#isReady;
    throw tooLargeResourceVersion(wanted, this.revision(), 1);
  }

  /**
   * As `notOlderThan`, for watches that resume from `wanted`. A revision beyond the store's belongs to a history that is gone
   * (etcd was restored): waiting until the store reaches it again would skip the writes in between, so it is rejected.
   */
  async reachedExisting(wanted: number): Promise<boolean> {
    if (wanted > this.revision()) {
      const stored = await this.#options.multiplexer.storedRevision();
      if (wanted > stored) throw tooLargeResourceVersion(wanted, stored, 0);
    }
    return this.notOlderThan(wanted);
  }
}

interface Waiter {
  readonly revision: number;
  resolve(reached: boolean): void;
}

/** The revision up to which the caches have applied every change, and the readers that wait for a later one. */
export class AppliedRevision {
  readonly #clock: Clock;
  #value = 0;
  #waiters: Waiter[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get value(): number {
    return this.#value;
  }

  /** Resolves the waiters for `revision` or an earlier one. The value never decreases here. */
  advance(revision: number): void {
    this.#value = Math.max(revision, this.#value);
    if (this.#waiters.length === 0) return;
    const still: Waiter[] = [];
    for (const waiter of this.#waiters) {
      if (waiter.revision <= revision) waiter.resolve(true);
      else still.push(waiter);
    }
    this.#waiters = still;
  }

  /** Sets the value, also to an earlier one, without resolving waiters: the caches do not hold this revision yet. */
  restartAt(revision: number): void {
    this.#value = revision;
  }

  /** Resolves true as soon as `wanted` is reached, false after `timeoutMs` or when stopped. */
  reached(wanted: number, timeoutMs: number): Promise<boolean> {
    if (wanted <= this.#value) return Promise.resolve(true);
    return new Promise((resolve) => {
      const waiter: Waiter = {
        revision: wanted,
        resolve(reached) {
          timer.cancel();
          resolve(reached);
        },
      };
      const timer = this.#clock.after(timeoutMs, () => {
        this.#waiters = this.#waiters.filter((other) => other !== waiter);
        resolve(false);
      });
      this.#waiters.push(waiter);
    });
  }

  /** Resolves all waiters with false. */
  stop(): void {
    for (const waiter of this.#waiters) waiter.resolve(false);
    this.#waiters = [];
  }
}

/** Time to wait for the event of an existing revision before requesting progress or writing a barrier. */
const eventWaitMs = 4;
/** The store does not answer a progress request while its watch is behind; the request is repeated after this time. */
const progressTimeoutMs = 100;
/** When the revision is not reached within this time, reads go to etcd. */
const catchUpTimeoutMs = 3_000;

interface CatchUpOptions {
  readonly applied: AppliedRevision;
  /** @returns false where the store's progress is not usable and a barrier is needed */
  requestProgress(): boolean;
  /** @returns the revision of the write */
  writeBarrier(): Promise<number>;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Waits until the caches have applied a revision that the store has reached. Where its event does not come by itself, because
 * the revision was written outside of the prefix, it requests the watch's progress or writes a barrier key. All waiters share
 * the outstanding request and barrier.
 */
export class CatchUp {
  readonly #options: CatchUpOptions;
  #barrier: Promise<void> | undefined;
  /** Revision of the last barrier written; its event has arrived or is on its way. */
  #barrierRevision = 0;
  /** The outstanding progress request. Ends with the notification or after `progressTimeoutMs`. */
  #progress: { readonly ended: Promise<void>; end(): void } | undefined;
  #stopped = false;

  constructor(options: CatchUpOptions) {
    this.#options = options;
  }

  /** @returns false when the watch is too far behind, or the store rejects the barrier */
  async reach(wanted: number): Promise<boolean> {
    const { applied, clock, log } = this.#options;
    if (wanted <= applied.value || (await applied.reached(wanted, eventWaitMs))) return true;
    // Either the event is on its way, or the revision was written outside of the prefix and no event will come.
    const deadline = clock.monotonic() + catchUpTimeoutMs;
    while (wanted > applied.value && !this.#stopped && clock.monotonic() < deadline) {
      const answer = this.#requestedProgress();
      if (answer !== undefined) {
        await answer;
        // The request may predate this revision, or the member is behind: repeat it after a pause.
        await applied.reached(wanted, eventWaitMs);
        continue;
      }
      if (this.#barrierRevision < wanted) {
        try {
          this.#barrier ??= this.#writeBarrier();
          await this.#barrier;
        } catch (err) {
          // A store that rejects writes (out of space) can still be read.
          log.v(2)?.info("cannot write a barrier, reading etcd instead", { error: String(err) });
          return false;
        }
        continue; // the shared barrier may have begun earlier, with an older revision
      }
      await applied.reached(wanted, Math.max(deadline - clock.monotonic(), 1));
    }
    return wanted <= applied.value;
  }

  /** Ends the outstanding progress request. */
  progressArrived(): void {
    this.#progress?.end();
  }

  /** A new watch begins: the event of an earlier barrier will not arrive on it. */
  restart(): void {
    this.#barrierRevision = 0;
  }

  stop(): void {
    this.#stopped = true;
    this.#progress?.end();
  }

  async #writeBarrier(): Promise<void> {
    try {
      this.#barrierRevision = await this.#options.writeBarrier();
    } finally {
      this.#barrier = undefined;
    }
  }

  /** @returns undefined where the store cannot report progress */
  #requestedProgress(): Promise<void> | undefined {
    if (this.#progress === undefined && this.#options.requestProgress()) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const end = (): void => {
        timer.cancel();
        this.#progress = undefined;
        resolve();
      };
      const timer = this.#options.clock.after(progressTimeoutMs, end);
      this.#progress = { ended: promise, end };
    }
    return this.#progress?.ended;
  }
}

/** Reads that run at the same time; requests beyond them share the next one. */
const concurrentReads = 4;

/**
 * Answers many requests with few reads. A read is valid only for requests made before it began, so those that arrive while
 * `concurrentReads` reads run share the one that begins next.
 */
export class SharedRead<T> {
  readonly #read: () => Promise<T>;
  #running = 0;
  #next: PromiseWithResolvers<T> | undefined;

  constructor(read: () => Promise<T>) {
    this.#read = read;
  }

  /** @returns the result of a read that begins after the call @throws the read's error */
  get(): Promise<T> {
    if (this.#next === undefined) {
      this.#next = Promise.withResolvers();
      // Deferred by one event-loop turn, so that all requests of this turn share the read.
      if (this.#running < concurrentReads) setImmediate(() => this.#start());
    }
    return this.#next.promise;
  }

  #start(): void {
    const requested = this.#next;
    if (requested === undefined || this.#running >= concurrentReads) return;
    this.#next = undefined;
    this.#running++;
    this.#read()
      .then(requested.resolve, requested.reject)
      .finally(() => {
        this.#running--;
        if (this.#next !== undefined) this.#start();
      });
  }
}
