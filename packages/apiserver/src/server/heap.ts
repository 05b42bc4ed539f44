import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { OpenRequests } from "../filters/drain.ts";

/** How V8 treats the heap of a process that is nothing but an API server. */
export function tendHeap(server: { readonly started: Promise<void>; readonly requests: OpenRequests }): void {
  const settle = (): void => {
    growHeapInLargerSteps();
    collectYoungAlone();
    releaseStartMemory();
    collectBetweenRequests(server.requests);
  };
  void server.started.then(settle, () => {});
}

/**
 * Caches grow slowly, and V8 would collect the whole heap whenever 8 MB have come to it, Buffers included: every second or two
 * at a hundred writes a second. Marking takes a processor for 50 ms, and what happens then is what a p99 tells. Not at the start,
 * when the heap grows for good.
 */
function growHeapInLargerSteps(): void {
  setFlagsFromString("--heap-growing-percent=60");
}

/**
 * A young collection is small: shared with a second thread it takes a seventh more of what the server needs at a hundred updates
 * a second to a hundred watchers, and waits for that thread where others want the processor too.
 */
function collectYoungAlone(): void {
  setFlagsFromString("--no-parallel-scavenge");
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

/** Of its capacity; V8 itself collects it from 80 % on. The fuller it is the longer that takes, and the next request may come. */
const fullShare = 0.3;
const lookEveryMs = 4;
/** Of the time since the last look at it. A busier server has pauses too, but pays for more collections with throughput. */
const mostBusyShare = 0.5;
/** What a request leaves to be done, events to its watchers above all, comes first. */
const pauseMs = 1;

/**
 * Collects the young generation while no request runs, when it is so full that V8 would do it in the middle of one of the next:
 * its answer and the events of it then wait for 2 to 5 ms, twice what they take without. Where the server is busy, V8 decides.
 * @param collect for tests
 */
export function collectBetweenRequests(requests: OpenRequests, collect: () => void = collectYoung): void {
  let waiting = false;
  let lookedAt = 0;
  let before = performance.eventLoopUtilization();
  requests.onIdle = () => {
    const now = performance.now();
    if (waiting || now - lookedAt < lookEveryMs) return;
    lookedAt = now;
    if (youngShare() < fullShare) return;
    const loop = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(loop, before);
    before = loop;
    if (utilization > mostBusyShare) return;
    waiting = true;
    setTimeout(() => {
      waiting = false;
      if (requests.idle) collect();
    }, pauseMs).unref();
  };
}

function youngShare(): number {
  const space = getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space");
  return space === undefined ? 0 : space.space_used_size / (space.space_used_size + space.space_available_size);
}

type Collect = (options: { type: "major" | "minor"; flavor?: "last-resort" }) => void;
let collector: Collect | undefined;

/** By V8's own function, which stays unknown to everybody else. */
function runCollector(options: Parameters<Collect>[0]): void {
  if (collector === undefined) {
    setFlagsFromString("--expose-gc");
    collector = runInNewContext("gc") as Collect;
    setFlagsFromString("--no-expose-gc");
  }
  collector(options);
}

const collectAll = (): void => runCollector({ type: "major", flavor: "last-resort" });
const collectYoung = (): void => runCollector({ type: "minor" });
