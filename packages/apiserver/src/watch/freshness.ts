import type { Clock } from "@coxswain/apimachinery/clock/clock";
import { tooLargeResourceVersion } from "@coxswain/apimachinery/errors/status-error";
import type { WatchMultiplexer } from "./multiplexer.ts";

export interface FreshnessOptions {
  readonly multiplexer: Pick<WatchMultiplexer, "revision" | "generation" | "fresh" | "reached" | "storedRevision">;
  /** Revision of the list that the cache was loaded from. */
  listed(): number;
  /** How long a read waits for a revision that has not arrived, and for the initial list. */
  readonly patienceMs: number;
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

  /** The state is not updated any more. `whenReady` keeps what it was: nobody is left waiting. */
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
    const { clock, patienceMs } = this.#options;
    let timer: { cancel(): void } | undefined;
    const late = new Promise<void>((resolve) => {
      timer = clock.after(patienceMs, resolve);
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
    if (await this.#options.multiplexer.reached(wanted, this.#options.patienceMs)) return this.#isReady;
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
