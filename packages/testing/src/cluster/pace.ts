import type { VirtualClock } from "../time/virtual-clock.ts";
import { type Activity, untilIdle } from "./activity.ts";

/** Time that work outside the cluster gets to finish when nothing is due in the cluster, in ms. */
const foreignMs = 250;

/** Limit of a request's duration in virtual time; one that takes longer will not complete. */
const longestAssistMs = 3_600_000;

/** Advances virtual time from one due timer to the next, each time after everything that the previous one started has ended. */
export class Pace {
  readonly #clock: VirtualClock;
  readonly #activity: Activity;
  readonly #writes: () => number;
  /** End of the queue of callers; only one may advance time at once. */
  #last: Promise<unknown> = Promise.resolve();
  /** Number of callers that advance time or wait for their turn. */
  #movers = 0;

  /** @param writes number of writes to the store so far */
  constructor(clock: VirtualClock, activity: Activity, writes: () => number) {
    this.#clock = clock;
    this.#activity = activity;
    this.#writes = writes;
  }

  /** Waits until nothing runs at the current time; does not advance it. */
  idle(): Promise<void> {
    return untilIdle(this.#activity, () => this.#clock.fired + this.#writes());
  }

  /** Advances to a time, through everything that is due before. */
  advanceTo(targetMs: number): Promise<void> {
    return this.#alone(async () => {
      while (await this.#step(targetMs));
      this.#clock.moveTo(targetMs);
      await this.idle();
    });
  }

  /** Advances until `isDone`, which is called after each step, returns true. @returns false when it did not by `limitMs` */
  until(isDone: () => boolean | Promise<boolean>, limitMs: number): Promise<boolean> {
    return this.#alone(async () => {
      for (;;) {
        await this.idle();
        const answer = isDone();
        if (typeof answer === "boolean" ? answer : await this.#during(answer, limitMs)) return true;
        if (await this.#step(limitMs)) continue;
        this.#clock.moveTo(limitMs);
        await this.idle();
        return isDone();
      }
    });
  }

  /** Advances until `work` has ended. @throws its error; Error when it has not ended by `limitMs` */
  through<T>(what: string, work: Promise<T>, limitMs: number): Promise<T> {
    return this.#alone(() => this.#during(work, limitMs, what));
  }

  /**
   * Waits for `work`, and advances time when it cannot end otherwise and no other caller advances it; for work that a caller which advances
   * time may wait for.
   */
  async assist<T>(what: string, work: Promise<T>): Promise<T> {
    let isOver = false;
    const over = (): void => {
      isOver = true;
    };
    const settled = work.then(over, over);
    while (!isOver) {
      if (this.#movers > 0) await Promise.race([settled, this.#last]);
      else await Promise.race([settled, this.through(what, work, this.#clock.now() + longestAssistMs).then(over, over)]);
    }
    return work;
  }

  async #during<T>(work: Promise<T>, limitMs: number, what = "the condition"): Promise<T> {
    let isOver = false;
    const over = (): void => {
      isOver = true;
    };
    work.then(over, over);
    for (;;) {
      await this.idle();
      if (isOver) return work;
      if (await this.#step(limitMs)) continue;
      // Work outside the cluster, such as sockets and files, may be pending.
      await new Promise((resolve) => void setTimeout(resolve, foreignMs));
      await this.idle();
      if (isOver) return work;
      if ((this.#clock.nextDue ?? Number.POSITIVE_INFINITY) <= limitMs) continue;
      throw new Error(`${what} has not ended within the given time${busyText(this.#activity)}`);
    }
  }

  /** Advances to the next due timer. @returns false when none is due by `limitMs` */
  async #step(limitMs: number): Promise<boolean> {
    await this.idle();
    const next = this.#clock.nextDue;
    if (next === undefined || next > limitMs) return false;
    this.#clock.moveTo(next);
    return true;
  }

  async #alone<T>(move: () => Promise<T>): Promise<T> {
    const before = this.#last;
    this.#movers++;
    const mine = before.then(move, move).finally(() => {
      this.#movers--;
    });
    this.#last = mine.catch(() => {});
    return mine;
  }
}

/** A clause for error texts that names up to five operations which keep time from advancing; empty when there are none. */
export function busyText({ open }: Activity): string {
  return open.length === 0 ? "" : `; under way: ${open.slice(0, 5).join(", ")}`;
}
