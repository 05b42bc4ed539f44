import crypto from "node:crypto";
import fs from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import os from "node:os";
import type { Timer } from "@coxswain/apimachinery/process/clock/clock";
import { uuidOf } from "./uuid.ts";

/** Replacements for the process's functions. */
interface Inside {
  readonly now: () => number;
  readonly monotonic: () => number;
  readonly random: () => number;
  after(delayMs: number, label: string, fire: () => void): Timer;
}

export interface Seal {
  /** Resolves when all work has run that does not wait for time or messages. */
  settle(): Promise<void>;
  /** Restores the original functions. */
  open(): void;
}

const real = {
  now: Date.now,
  random: Math.random,
  setTimeout: globalThis.setTimeout,
  clearTimeout: globalThis.clearTimeout,
  setInterval: globalThis.setInterval,
  clearInterval: globalThis.clearInterval,
  setImmediate: globalThis.setImmediate,
  timeout: AbortSignal.timeout,
  uuid: crypto.randomUUID,
  randomInt: crypto.randomInt,
  hostname: os.hostname,
};

/** WebCrypto functions, which run in other threads; while calls are in progress the process is not idle. */
const ofWebCrypto = [
  "decrypt",
  "deriveBits",
  "deriveKey",
  "digest",
  "encrypt",
  "exportKey",
  "generateKey",
  "importKey",
  "sign",
  "verify",
] as const;

type Asynchronous = (...given: unknown[]) => Promise<unknown>;

let sealed = false;

/**
 * Replaces everything in the process that differs between runs: time, timers, random numbers, names. This needs no changes in the code
 * under test; code that takes a clock is given one nevertheless, so that a crash can stop its timers.
 */
export function sealProcess(inside: Inside): Seal {
  if (sealed) throw new Error("the process is sealed already");
  sealed = true;
  /** Pending calls of setImmediate and of functions that run in other threads. */
  let turns = 0;
  const count = (change: 1 | -1): void => {
    turns += change;
  };
  const subtle = crypto.subtle as unknown as Record<string, Asynchronous>; // cast: its methods are replaced by name
  const releases = [...ofWebCrypto.map((name) => countCalls(subtle, name, count)), countCalls(fs as never, "readFile", count)]; // cast: its methods are replaced by name
  Date.now = inside.now;
  Math.random = inside.random;
  Object.defineProperty(performance, "now", { value: inside.monotonic, configurable: true, writable: true });
  globalThis.setTimeout = ((fire: (...given: unknown[]) => void, ms?: number, ...given: unknown[]) =>
    timerOf(inside, ms, "process: timer", () => fire(...given))) as never; // cast: without __promisify__, which nothing in the simulation uses
  globalThis.setInterval = ((fire: () => void, ms = 1) => {
    let inner: unknown;
    const arm = (): void => {
      inner = timerOf(inside, Math.max(1, ms), "process: interval", () => {
        arm();
        fire();
      });
    };
    arm();
    const handle = { ref: () => handle, unref: () => handle, cancel: () => cancel(inner) };
    return handle;
  }) as never; // cast: without __promisify__, which nothing in the simulation uses
  Object.assign(globalThis, { clearTimeout: cancel, clearInterval: cancel });
  globalThis.setImmediate = ((fire: (...given: unknown[]) => void, ...given: unknown[]) => {
    turns++;
    return real.setImmediate(() => {
      turns--;
      fire(...given);
    });
  }) as never; // cast: without __promisify__, which nothing in the simulation uses
  AbortSignal.timeout = (ms) => {
    const controller = new AbortController();
    inside.after(ms, "process: deadline", () => controller.abort(new DOMException("The operation timed out", "TimeoutError")));
    return controller.signal;
  };
  crypto.randomUUID = (() => uuidOf(inside.random)) as never; // cast: the declared type of a UUID is a template literal
  crypto.randomInt = randomIntOf(inside.random) as never; // cast: has overloads
  os.hostname = () => "simulated";
  syncBuiltinESMExports();

  return {
    async settle() {
      // A turn of the real loop runs all microtasks and ticks; another one is needed when these have scheduled further work.
      do await new Promise<void>((resolve) => void real.setImmediate(resolve));
      while (turns > 0);
    },
    open() {
      sealed = false;
      Date.now = real.now;
      Math.random = real.random;
      delete (performance as { now?: unknown }).now; // cast: a required property is deleted, so that the inherited one is visible again
      globalThis.setTimeout = real.setTimeout;
      globalThis.clearTimeout = real.clearTimeout;
      globalThis.setInterval = real.setInterval;
      globalThis.clearInterval = real.clearInterval;
      globalThis.setImmediate = real.setImmediate;
      AbortSignal.timeout = real.timeout;
      crypto.randomUUID = real.uuid;
      crypto.randomInt = real.randomInt;
      os.hostname = real.hostname;
      for (const release of releases) release();
      syncBuiltinESMExports();
    },
  };
}

/** A handle as Node's timers return it. */
function timerOf(inside: Inside, delayMs = 1, label: string, fire: () => void): object {
  const timer = inside.after(delayMs, label, fire);
  const handle = {
    ref: () => handle,
    unref: () => handle,
    hasRef: () => false,
    cancel: () => timer.cancel(),
    refresh: () => handle,
  };
  return handle;
}

const cancel = (handle: unknown): void => (handle as Timer | undefined)?.cancel?.(); // cast: only handles of the replaced timers reach it

/** @param count called with 1 at the start of each call, and with -1 at its end. @returns a function that restores the method */
function countCalls(holder: Record<string, Asynchronous>, name: string, count: (change: 1 | -1) => void): () => void {
  const own = Object.getOwnPropertyDescriptor(holder, name);
  const method = holder[name]!;
  holder[name] = async (...given) => {
    count(1);
    try {
      return await method.apply(holder, given);
    } finally {
      count(-1);
    }
  };
  return () => {
    if (own === undefined) delete holder[name];
    else Object.defineProperty(holder, name, own);
  };
}

const randomIntOf =
  (random: () => number) =>
  (from: number, to?: number): number => {
    const [low, high] = to === undefined ? [0, from] : [from, to];
    return low + Math.floor(random() * (high - low));
  };
