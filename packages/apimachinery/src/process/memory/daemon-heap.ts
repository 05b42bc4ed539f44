import { PerformanceObserver } from "node:perf_hooks";
import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
import { releaseStartMemory } from "./start-memory.ts";

/** A daemon has started by then, unless the API server is unavailable. */
const startMs = 5_000;

/**
 * Tunes V8's heap in a process that runs one daemon, after its start: returns the memory that only the start needed, and collects the
 * young generation in one thread. Parallel scavenging uses more CPU time than it saves where a daemon uses a part of one CPU.
 * @param options.youngBytes stops the growth of the young generation, both semi-spaces together, once it has this size. V8 doubles it
 * several times, from 2 to 50 MB. A larger one is collected less often, but keeps its memory while the daemon works. 0 keeps its size, for
 * a process that allocates little and runs on every node
 * @param options.collectsRarely collects the old generation only when it has doubled, for a process whose informers replace many objects:
 * they live for seconds, too long for the young generation, and each collection of the old one marks all that is kept
 */
export function tuneDaemonHeap(options: { readonly youngBytes?: number; readonly collectsRarely?: boolean } = {}): void {
  const tune = (): void => {
    if (options.youngBytes !== undefined) stopGrowthAt(options.youngBytes);
    if (options.collectsRarely === true) setFlagsFromString("--heap-growing-percent=100");
    setFlagsFromString("--no-parallel-scavenge");
    releaseStartMemory();
  };
  setTimeout(tune, startMs).unref();
}

/** V8 reads the factor at each collection. It shrinks the young generation of an idle process, which may then grow again. */
function stopGrowthAt(youngBytes: number): void {
  let grows = true;
  const adjust = (): void => {
    const mayGrow = youngSize() < youngBytes;
    if (mayGrow === grows) return;
    grows = mayGrow;
    setFlagsFromString(`--semi-space-growth-factor=${grows ? 2 : 1}`);
  };
  adjust();
  if (youngBytes > 0) new PerformanceObserver(adjust).observe({ entryTypes: ["gc"] });
}

function youngSize(): number {
  return getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space")?.space_size ?? 0;
}
