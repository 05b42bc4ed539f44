import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

const quietMs = 1_000;
/** Event-loop utilization below which the process counts as idle. */
const quietShare = 0.05;
/** A larger heap takes too long to collect, and the startup garbage is a small part of it. */
const largestBytes = 80 * 1024 * 1024;
const mostLooks = 60;

/**
 * Returns memory that only startup needed, 40 of 150 MB, in the first idle second. V8 does so in a major collection only,
 * which an idle server never triggers. Takes about 70 ms.
 * @param release runs the collection; replaced by tests
 */
export function releaseStartMemory(release: () => void = () => releaseMemory()): { cancel(): void } {
  let looks = 0;
  const utilization = newUtilization();
  const timer = setInterval(() => {
    const isQuiet = utilization() < quietShare;
    if (isQuiet && process.memoryUsage().heapUsed <= largestBytes) release();
    if (isQuiet || ++looks === mostLooks) clearInterval(timer);
  }, quietMs).unref();
  return { cancel: () => clearInterval(timer) };
}

/** @returns a function for the share of time, from 0 to 1, that the event loop was busy since its last call */
export function newUtilization(): () => number {
  let before = performance.eventLoopUtilization();
  return () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    return utilization;
  };
}

/** Longer than V8 waits before it reduces the heap: 8 s after a major collection, and not in the first 30 s of a process. */
const reducedMs = 40_000;

/**
 * Collects all garbage and returns the memory to the machine. V8 would look for more with two further major collections, once the process is idle:
 * 0.1 s of CPU that finds nothing.
 * @param pauseMs how long V8 does not do so
 */
export function releaseMemory(pauseMs: number = reducedMs): void {
  collectGarbage({ type: "major", flavor: "last-resort" });
  setFlagsFromString("--memory-reducer-gc-count=0");
  setTimeout(() => setFlagsFromString(`--memory-reducer-gc-count=${usualReductions}`), pauseMs).unref();
}

/** V8's default. */
const usualReductions = 2;

type Collect = (options: { type: "major" | "minor"; flavor?: "last-resort" }) => void;
/** V8's function, made once. */
let collector: Collect | undefined;

/** Runs V8's gc function without exposing it globally. */
export function collectGarbage(options: Parameters<Collect>[0]): void {
  if (collector === undefined) {
    setFlagsFromString("--expose-gc");
    collector = runInNewContext("gc") as Collect; // cast: V8's function, which --expose-gc defines
    setFlagsFromString("--no-expose-gc");
  }
  collector(options);
}
