import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
import { collectGarbage, newUtilization, releaseStartMemory } from "@coxswain/apimachinery/process/memory/start-memory";
import type { OpenRequests } from "../filters/lifetime.ts";

/** Tunes V8's garbage collector for a process that only runs an API server. */
export function tendHeap(server: { readonly started: Promise<void>; readonly requests: OpenRequests }): void {
  const settle = (): void => {
    keepNewObjectsYoung();
    growHeapInLargerSteps();
    countBuffersInHeapLimit();
    collectYoungAlone();
    releaseStartMemory();
    collectBetweenRequests(server.requests);
  };
  void server.started.then(settle, () => {});
}

/**
 * Allocates all objects in the young generation. V8 otherwise allocates those of a literal whose objects have lived long, while caches were
 * filled, in the old generation from then on. Those of a request die at once, but what they refer to then survives each young collection: up to
 * half of a read's CPU time.
 */
function keepNewObjectsYoung(): void {
  setFlagsFromString("--no-allocation-site-pretenuring");
}

/**
 * Larger steps between major collections. The caches grow slowly, and V8 would run a major collection for every 8 MB
 * allocated, Buffers included: every second or two at a hundred writes per second. Marking takes 50 ms of CPU, which
 * determines the p99 latency. Not during startup, when the heap grows permanently.
 */
function growHeapInLargerSteps(): void {
  setFlagsFromString("--heap-growing-percent=60");
}

/**
 * Buffers count towards the limit of the heap, and no longer have one of their own. V8 otherwise runs a major collection for every few
 * dozen MB of new Buffers, whatever the size of the heap. With 15,000 pods, 100 of which were replaced per second before 50 watchers, that
 * was more than one per second: 0.6 of a CPU, and requests waited for seconds.
 */
function countBuffersInHeapLimit(): void {
  setFlagsFromString("--external-memory-accounted-in-global-limit");
}

/**
 * Young collections are small: a second scavenger thread adds a seventh to the server's CPU time at a hundred updates per
 * second to a hundred watchers, and waiting for it delays the collection on a busy machine.
 */
function collectYoungAlone(): void {
  setFlagsFromString("--no-parallel-scavenge");
}

/**
 * Share of the young generation's capacity from which on it is collected while the server is idle. A fuller one takes longer,
 * and a request may arrive meanwhile; V8 itself collects it from 80 % on.
 */
const fullShare = 0.3;
/**
 * The same for a quiet server, whose young generation V8 has shrunk to half a megabyte: it would be collected after every second request,
 * and hardly any request arrives during a collection.
 */
const quietFullShare = 0.7;
/** Share of busy time since the last check below which a server is quiet. */
const quietShare = 0.02;
const lookEveryMs = 4;
/**
 * Share of busy time since the last check above which nothing is collected: a busier server has idle moments too, but more
 * collections would cost throughput.
 */
const mostBusyShare = 0.5;
/** Delay after the last request, for its remaining work, mainly the events to its watchers. */
const pauseMs = 1;

/**
 * Collects the young generation between requests when it is filled to the point where V8 would collect it during one of the
 * next ones, which delays that response and its events by 2 to 5 ms, twice their normal latency. On a busy server V8 decides.
 * @param collect replaced by tests
 */
export function collectBetweenRequests(requests: OpenRequests, collect: () => void = collectYoung): void {
  let waiting = false;
  let lookedAt = 0;
  const utilization = newUtilization();
  requests.onIdle = () => {
    const now = performance.now();
    if (waiting || now - lookedAt < lookEveryMs) return;
    lookedAt = now;
    const share = youngShare();
    if (share < fullShare || !isCollectionDue(share, utilization())) return;
    waiting = true;
    setTimeout(() => {
      waiting = false;
      if (requests.idle) collect();
    }, pauseMs).unref();
  };
}

/** @param busy share of busy time since the last check */
export function isCollectionDue(share: number, busy: number): boolean {
  return busy <= mostBusyShare && share >= (busy < quietShare ? quietFullShare : fullShare);
}

function youngShare(): number {
  const space = getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space");
  return space === undefined ? 0 : space.space_used_size / (space.space_used_size + space.space_available_size);
}

const collectYoung = (): void => collectGarbage({ type: "minor" });
