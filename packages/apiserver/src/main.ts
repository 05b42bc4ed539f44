#!/usr/bin/env node
import { setFlagsFromString } from "node:v8";
import { runMain } from "@coxswain/apimachinery/flags/run-main";
import { configFromFlags } from "./config.ts";
import { kubeApiserver } from "./flags.ts";
import { startApiserver } from "./server.ts";

await runMain(kubeApiserver, async (flags, { log, signal, featureGates }) => {
  const server = await startApiserver(configFromFlags(flags), { log, featureGates });
  const stopped = new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
  void server.started.then(growHeapInLargerSteps, () => {});
  // A server that cannot start (a plugin's configuration is wrong, say) must not stay and answer 503.
  await Promise.race([stopped, server.started.then(() => stopped)]);
  await server.stop();
});

/**
 * Caches grow slowly, and V8 would collect the whole heap whenever 8 MB have come to it, Buffers included: every second or two
 * at a hundred writes a second. Marking takes a processor for 50 ms, and what happens then is what a p99 tells. Not at the start,
 * when the heap grows for good.
 */
function growHeapInLargerSteps(): void {
  setFlagsFromString("--heap-growing-percent=60");
}
