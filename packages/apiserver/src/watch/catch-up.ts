import type { Clock } from "@coxswain/apimachinery/clock/clock";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import type { AppliedRevision } from "./applied-revision.ts";

/** Time to wait for the event of an existing revision before requesting progress or writing a barrier. */
const patienceMs = 4;
/** The store does not answer a progress request while its watch is behind; the request is repeated after this time. */
const progressPatienceMs = 100;
/** When the revision is not reached within this time, reads go to etcd. */
const catchUpTimeoutMs = 3_000;

export interface CatchUpOptions {
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
  /** The outstanding progress request. Ends with the notification or after `progressPatienceMs`. */
  #progress: { readonly ended: Promise<void>; end(): void } | undefined;
  #stopped = false;

  constructor(options: CatchUpOptions) {
    this.#options = options;
  }

  /** @returns false when the watch is too far behind, or the store rejects the barrier */
  async reach(wanted: number): Promise<boolean> {
    const { applied, clock, log } = this.#options;
    if (wanted <= applied.value || (await applied.reached(wanted, patienceMs))) return true;
    // Either the event is on its way, or the revision was written outside of the prefix and no event will come.
    const deadline = clock.monotonic() + catchUpTimeoutMs;
    while (wanted > applied.value && !this.#stopped && clock.monotonic() < deadline) {
      const answer = this.#requestedProgress();
      if (answer !== undefined) {
        await answer;
        // The request may predate this revision, or the member is behind: repeat it after a pause.
        await applied.reached(wanted, patienceMs);
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
      const timer = this.#options.clock.after(progressPatienceMs, end);
      this.#progress = { ended: promise, end };
    }
    return this.#progress?.ended;
  }
}
