import { setFlagsFromString } from "node:v8";
import { releaseStartMemory } from "./start-memory.ts";

/** A daemon has started by then, unless the API server is unavailable. */
const startMs = 5_000;

/**
 * Tunes V8's heap in a process that runs one daemon, after its start: returns the memory that only the start needed, and collects the
 * young generation in one thread. Parallel scavenging uses more CPU time than it saves where a daemon uses a part of one CPU.
 * @param options.staysSmall also keeps the young generation at its size, for a process that allocates little and runs on every node; V8
 * would let it grow to 24 MB
 * @param options.collectsRarely collects the old generation only when it has doubled, for a process whose informers replace many objects:
 * they live for seconds, too long for the young generation, and each collection of the old one marks all that is kept
 */
export function tuneDaemonHeap(options: { readonly staysSmall?: boolean; readonly collectsRarely?: boolean } = {}): void {
  const tune = (): void => {
    if (options.staysSmall === true) setFlagsFromString("--semi-space-growth-factor=1");
    if (options.collectsRarely === true) setFlagsFromString("--heap-growing-percent=100");
    setFlagsFromString("--no-parallel-scavenge");
    releaseStartMemory();
  };
  setTimeout(tune, startMs).unref();
}
