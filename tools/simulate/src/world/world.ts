import type { Timer } from "@coxswain/apimachinery/process/clock/clock";
import type { Random } from "@coxswain/apimachinery/testing/random";
import { randomOf } from "@coxswain/apimachinery/testing/random";
import { EventHeap, type WorldEvent } from "@coxswain/testing/time/event-heap";
import type { TimeLine } from "@coxswain/testing/time/time-line";
import { type Seal, sealProcess } from "./seal.ts";

/**
 * A deterministic discrete event simulation: timers and messages are events on one virtual time line. One event is a step; everything
 * that it causes without waiting runs before the next step. The same seed gives the same steps.
 */
export interface World extends TimeLine {
  readonly random: () => number;
  readonly steps: number;
  /** Runs steps until the promise is settled. @throws Error when no event is left, or after `limitMs` of virtual time */
  until<T>(what: string, promise: Promise<T>, limitMs?: number): Promise<T>;
  /** Runs steps for so much virtual time. */
  run(durationMs: number): Promise<void>;
  /** Called after each step. */
  onStep(check: () => void): void;
  /** Hash of the trace so far. */
  readonly hash: string;
  /** The last lines of the trace. */
  readonly lastSteps: readonly string[];
  /** Restores the process's functions. */
  end(): Promise<void>;
}

interface WorldOptions {
  readonly seed: number;
  /** Called with each line of the trace. */
  readonly onTrace?: ((line: string) => void) | undefined;
  /** Number of trace lines to keep. */
  readonly kept?: number;
}

/** 2022-01-01T00:00:00Z */
const startMs = Date.UTC(2022, 0, 1);

interface TraceLine {
  readonly at: number;
  readonly text: string;
}

const shown = ({ at, text }: TraceLine): string => `${((at - startMs) / 1000).toFixed(3)} ${text}`;

/** Only one can exist at a time in a process: it replaces the process's clock, timers and random numbers until `end`. */
export function newWorld(options: WorldOptions): World {
  return new SimulatedWorld(options);
}

class SimulatedWorld implements World {
  readonly random: () => number;
  readonly #options: WorldOptions;
  readonly #kept: number;
  readonly #random: Random;
  readonly #heap = new EventHeap();
  readonly #checks: (() => void)[] = [];
  /** Formatted when they are read, which few are. */
  readonly #lines: TraceLine[] = [];
  #now = startMs;
  #steps = 0;
  #hash = 0x811c9dc5;
  readonly #seal: Seal;

  constructor(options: WorldOptions) {
    this.#options = options;
    const { seed, kept = 200 } = options;
    this.#kept = kept;
    this.#random = randomOf(seed);
    this.#seal = sealProcess({
      now: () => this.#now,
      monotonic: () => this.#now - startMs,
      random: this.#random,
      after: (delayMs, label, fire) => this.after(delayMs, label, fire),
    });
    this.random = this.#random;
  }

  now(): number {
    return this.#now;
  }

  get steps(): number {
    return this.#steps;
  }

  after(delayMs: number, label: string, fire: () => void): Timer {
    const event: WorldEvent = { at: this.#now + Math.max(0, Math.round(delayMs)), rank: this.#random(), label, fire };
    this.#heap.push(event);
    return {
      cancel() {
        event.fire = undefined;
      },
    };
  }

  note(text: string): void {
    const { onTrace } = this.#options;
    let hash = this.#hash;
    for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
    this.#hash = Math.imul(hash ^ this.#now, 0x01000193);
    const line = { at: this.#now, text };
    if (this.#lines.push(line) > 2 * this.#kept) this.#lines.splice(0, this.#kept);
    onTrace?.(shown(line));
  }

  async until<T>(what: string, promise: Promise<T>, limitMs = 3_600_000): Promise<T> {
    let done = false;
    const finish = (): void => {
      done = true;
    };
    promise.then(finish, finish);
    const limit = this.#now + limitMs;
    await this.#seal.settle();
    while (!done) {
      if (!(await this.#step(limit))) throw new Error(`${what}: nothing more happens within ${limitMs / 1000} s`);
    }
    return promise;
  }

  async run(durationMs: number): Promise<void> {
    const limit = this.#now + Math.round(durationMs);
    await this.#seal.settle();
    while (await this.#step(limit));
    this.#now = limit;
  }

  onStep(check: () => void): void {
    void this.#checks.push(check);
  }

  get hash(): string {
    return (this.#hash >>> 0).toString(16).padStart(8, "0");
  }

  get lastSteps(): readonly string[] {
    return this.#lines.slice(-this.#kept).map(shown);
  }

  async end(): Promise<void> {
    await this.#seal.settle();
    this.#seal.open();
  }

  /** @returns false when no event is due before `limit` */
  async #step(limit: number): Promise<boolean> {
    for (;;) {
      const next = this.#heap.first;
      if (next === undefined || next.at > limit) return false;
      this.#heap.pop();
      if (next.fire === undefined) continue;
      this.#now = Math.max(this.#now, next.at);
      this.#steps++;
      this.note(next.label);
      next.fire();
      await this.#seal.settle();
      for (const check of this.#checks) check();
      return true;
    }
  }
}
