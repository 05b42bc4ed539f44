import { setFlagsFromString } from "node:v8";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { releaseStartMemory } from "@coxswain/apimachinery/process/memory/start-memory";

/** By then all parts have started, unless the API server is away. */
const startMs = 5_000;

/**
 * Keeps the process small after its start: it runs on every node, and does little for most of its time. V8 would let the young
 * generation grow to 24 MB, which a process that allocates little fills and keeps.
 */
export function keepHeapSmall(clock: Clock): void {
  clock.after(startMs, () => {
    setFlagsFromString("--semi-space-growth-factor=1");
    releaseStartMemory();
  });
}
