#!/usr/bin/env node
import { setFlagsFromString } from "node:v8";
import { printVersionAlone, quickenImports } from "@coxswain/apimachinery/flags/quick-imports";

if (!printVersionAlone(process.argv.slice(2))) {
  // The process runs on every node and is idle most of the time, so its memory counts (docs/benchmarks.md). V8 would let the young
  // generation grow to 24 MB, which a process that allocates little fills and keeps. The compiler Turbofan takes 6 MB, Sparkplug
  // 3 MB, and neither makes DNS answers cheaper: Maglev compiles their code. Set before anything is loaded, because stored
  // compiled code is used only with the same flags.
  setFlagsFromString("--semi-space-growth-factor=1");
  setFlagsFromString("--no-turbofan");
  setFlagsFromString("--no-sparkplug");
  quickenImports(import.meta.dirname);
  await import("./coxswain-services.ts");
}
