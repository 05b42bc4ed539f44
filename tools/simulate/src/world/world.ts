import type { Clock, Timer } from "@coxswain/apimachinery/clock/clock";
import { randomOf } from "@coxswain/apimachinery/testing/random";
import { EventHeap, type WorldEvent } from "./event-heap.ts";
import { type Seal, sealProcess } from "./seal.ts";

/**
 * A world in which nothing happens but what was scheduled: timers and messages are events on one virtual time line. One event is a step; all
 * that follows from it without waiting runs before the next step. The same seed gives the same steps.
 */
export interface World {
  readonly random: () => number;
  /** Virtual ms since the epoch. */
  readonly now: () => number;
  readonly steps: number;
  /** @param label what the trace says of it */
  after(delayMs: number, label: string, fire: () => void): Timer;
  /** Adds a line to the trace. */
  note(line: string): void;
  /** Steps until the promise is settled. @throws Error when nothing is left to happen, or `limitMs` of virtual time are over */
  until<T>(what: string, promise: Promise<T>, limitMs?: number): Promise<T>;
  /** Steps through so much virtual time. */
  run(durationMs: number): Promise<void>;
  /** Called after each step. */
  onStep(check: () => void): void;
  /** Of the trace so far. */
  readonly hash: string;
  /** The last lines of the trace. */
  readonly lastSteps: readonly string[];
  end(): void;
}

export interface WorldOptions {
  readonly seed: number;
  /** Called with each line of the trace. */
  readonly onTrace?: ((line: string) => void) | undefined;
  /** Lines of the trace that are kept. */
  readonly kept?: number;
}

/** 2022-01-01T00:00:00Z */
const startMs = Date.UTC(2022, 0, 1);

/** There is one at a time in a process: it replaces the process's clock, timers and random numbers until `end`. */
export function newWorld({ seed, onTrace, kept = 200 }: WorldOptions): World {
  const random = randomOf(seed);
  const heap = new EventHeap();
  const checks: (() => void)[] = [];
  const lines: string[] = [];
  let now = startMs;
  let steps = 0;
  let hash = 0x811c9dc5;

  const note = (text: string): void => {
    for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
    hash = Math.imul(hash ^ now, 0x01000193);
    const line = `${((now - startMs) / 1000).toFixed(3)} ${text}`;
    if (lines.push(line) > 2 * kept) lines.splice(0, kept);
    onTrace?.(line);
  };
  const after = (delayMs: number, label: string, fire: () => void): Timer => {
    const event: WorldEvent = { at: now + Math.max(0, Math.round(delayMs)), rank: random(), label, fire };
    heap.push(event);
    return {
      cancel() {
        event.fire = undefined;
      },
    };
  };
  const seal: Seal = sealProcess({ now: () => now, monotonic: () => now - startMs, random, after });

  /** @returns false when nothing is left to happen before `limit` */
  const step = async (limit: number): Promise<boolean> => {
    for (;;) {
      const next = heap.first;
      if (next === undefined || next.at > limit) return false;
      heap.pop();
      if (next.fire === undefined) continue;
      now = Math.max(now, next.at);
      steps++;
      note(next.label);
      next.fire();
      await seal.settle();
      for (const check of checks) check();
      return true;
    }
  };

  return {
    random,
    now: () => now,
    get steps() {
      return steps;
    },
    after,
    note,
    async until(what, promise, limitMs = 3_600_000) {
      let done = false;
      const finish = (): void => {
        done = true;
      };
      promise.then(finish, finish);
      const limit = now + limitMs;
      await seal.settle();
      while (!done) {
        if (!(await step(limit))) throw new Error(`${what}: nothing more happens within ${limitMs / 1000} s`);
      }
      return promise;
    },
    async run(durationMs) {
      const limit = now + Math.round(durationMs);
      await seal.settle();
      while (await step(limit));
      now = limit;
    },
    onStep: (check) => void checks.push(check),
    get hash() {
      return (hash >>> 0).toString(16).padStart(8, "0");
    },
    get lastSteps() {
      return lines.slice(-kept);
    },
    end: () => seal.open(),
  };
}

/** A process of the world: its clock may be wrong, and nothing of it goes on after its crash. */
export interface SimulatedProcess {
  readonly name: string;
  readonly clock: Clock;
  readonly alive: boolean;
  /** From now on none of its timers fires. */
  crash(): void;
  /** @returns a function that removes the listener */
  onCrash(listener: () => void): () => void;
}

/** @param skewMs by how much its time of day is ahead */
export function newProcess(world: World, name: string, skewMs = 0): SimulatedProcess {
  let alive = true;
  const started = world.now();
  const listeners = new Set<() => void>();
  const after = (delayMs: number, fire: () => void): Timer =>
    world.after(delayMs, `${name}: timer`, () => {
      if (alive) fire();
    });
  const clock: Clock = {
    now: () => world.now() + skewMs,
    monotonic: () => world.now() - started,
    after,
    every(periodMs, fire) {
      let timer: Timer;
      const arm = (): void => {
        timer = after(Math.max(1, periodMs), () => {
          arm();
          fire();
        });
      };
      arm();
      return { cancel: () => timer.cancel() };
    },
    sleep: (delayMs, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason);
        const onAbort = (): void => {
          timer.cancel();
          reject(signal?.reason);
        };
        const timer = after(delayMs, () => {
          signal?.removeEventListener("abort", onAbort);
          resolve();
        });
        signal?.addEventListener("abort", onAbort, { once: true });
      }),
  };
  return {
    name,
    clock,
    get alive() {
      return alive;
    },
    crash() {
      alive = false;
      for (const listener of [...listeners]) listener();
      listeners.clear();
    },
    onCrash(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
