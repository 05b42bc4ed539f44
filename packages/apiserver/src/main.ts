#!/usr/bin/env node
import { runMain } from "@coxswain/apimachinery/flags/run-main";
import { configFromFlags } from "./config.ts";
import { kubeApiserver } from "./flags.ts";
import { startApiserver } from "./server.ts";

await runMain(kubeApiserver, async (flags, { log, signal, featureGates }) => {
  const server = await startApiserver(configFromFlags(flags), { log, featureGates });
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
  await server.stop();
});
