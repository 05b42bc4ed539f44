import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/**
 * Caches grow slowly, and V8 would collect the whole heap whenever 8 MB have come to it, Buffers included: every second or two
 * at a hundred writes a second. Marking takes a processor for 50 ms, and what happens then is what a p99 tells. Not at the start,
 * when the heap grows for good.
 */
export function growHeapInLargerSteps(): void {
  setFlagsFromString("--heap-growing-percent=60");
}

const quietMs = 1_000;
/** Of the time between two looks. */
const quietShare = 0.05;
/** A larger heap takes too long for this, and the start's garbage is a small part of it. */
const largestBytes = 80 * 1024 * 1024;
const mostLooks = 60;

/**
 * Gives back what the start took and needs no more, 40 of 150 MB, in the first quiet second: V8 does so only when it collects the
 * whole heap, which a server that nobody asks anything never makes it do. Takes about 70 ms.
 * @param release collects; for tests
 */
export function releaseStartMemory(release: () => void = collectAll): { cancel(): void } {
  let looks = 0;
  let before = performance.eventLoopUtilization();
  const timer = setInterval(() => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    const isQuiet = utilization < quietShare;
    if (isQuiet && process.memoryUsage().heapUsed <= largestBytes) release();
    if (isQuiet || ++looks === mostLooks) clearInterval(timer);
  }, quietMs).unref();
  return { cancel: () => clearInterval(timer) };
}

function collectAll(): void {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as (options: { type: string; flavor: string }) => void;
  setFlagsFromString("--no-expose-gc");
  collect({ type: "major", flavor: "last-resort" });
}
