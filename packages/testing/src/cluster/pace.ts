import type { VirtualClock } from "../time/virtual-clock.ts";
import { type Activity, untilIdle } from "./activity.ts";

/** Time given to work outside the cluster when nothing in it is due. */
const foreignMs = 250;

/** A request that takes longer than that, in virtual time, waits for something that does not come. */
const longestAssistMs = 3_600_000;

/** Moves virtual time on, so that everything that a moment starts has ended before the next one comes. */
export class Pace {
  readonly #clock: VirtualClock;
  readonly #activity: Activity;
  readonly #writes: () => number;
  /** Two callers must not move time at once. */
  #last: Promise<unknown> = Promise.resolve();
  /** Callers that move time, or wait until they may. */
  #movers = 0;

  /** @param writes counts what is stored */
  constructor(clock: VirtualClock, activity: Activity, writes: () => number) {
    this.#clock = clock;
    this.#activity = activity;
    this.#writes = writes;
  }

  idle(): Promise<void> {
    return untilIdle(this.#activity, () => this.#clock.fired + this.#writes());
  }

  /** Moves to a time, through everything that is due before. */
  advanceTo(targetMs: number): Promise<void> {
    return this.#alone(async () => {
      while (await this.#step(targetMs));
      this.#clock.moveTo(targetMs);
      await this.idle();
    });
  }

  /** Moves on until `isDone`, which is called after each moment. @returns false when it was not so by `limitMs` */
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

  /** Moves on until `work` has ended. @throws what it throws; Error when it has not by `limitMs` */
  through<T>(what: string, work: Promise<T>, limitMs: number): Promise<T> {
    return this.#alone(() => this.#during(work, limitMs, what));
  }

  /**
   * Waits for `work`, and advances time when it cannot end otherwise and no other caller advances it; for work that others wait for while they
   * move time.
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
      // Something outside the cluster may have it in hand: a socket, a file.
      await new Promise((resolve) => void setTimeout(resolve, foreignMs));
      await this.idle();
      if (isOver) return work;
      if ((this.#clock.nextDue ?? Number.POSITIVE_INFINITY) <= limitMs) continue;
      throw new Error(`${what} has not ended within the given time${busyText(this.#activity)}`);
    }
  }

  /** To the next moment at which something is due. @returns false when nothing is until `limitMs` */
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

/** A clause for error texts, which names up to five activities that keep time from moving; empty when there is none. */
export function busyText({ open }: Activity): string {
  return open.length === 0 ? "" : `; under way: ${open.slice(0, 5).join(", ")}`;
}
