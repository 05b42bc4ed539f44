import { setFlagsFromString } from "node:v8";
import { releaseStartMemory } from "./start-memory.ts";

/** A daemon has started by then, unless the API server is unavailable. */
const startMs = 5_000;

/**
 * Tunes V8's heap in a process that runs one daemon, after its start: returns the memory that only the start needed, and collects the
 * young generation in one thread. Parallel scavenging uses more CPU time than it saves where a daemon uses a part of one CPU.
 * @param staysSmall also keeps the young generation at its size, for a process that allocates little and runs on every node; V8
 * would let it grow to 24 MB
 */
export function tuneDaemonHeap({ staysSmall = false }: { readonly staysSmall?: boolean } = {}): void {
  const tune = (): void => {
    if (staysSmall) setFlagsFromString("--semi-space-growth-factor=1");
    setFlagsFromString("--no-parallel-scavenge");
    releaseStartMemory();
  };
  setTimeout(tune, startMs).unref();
}
