#!/usr/bin/env node
import { setFlagsFromString } from "node:v8";
import { printVersionAlone, quickenImports } from "@coxswain/apimachinery/flags/quick-imports";

if (!printVersionAlone(process.argv.slice(2))) {
  quickenImports(import.meta.dirname);
  // The process runs on every node and is idle most of the time, so its memory counts (docs/benchmarks.md). V8 would let the young
  // generation grow to 24 MB, which a process that allocates little fills and keeps. The compiler Turbofan takes 6 MB, Sparkplug
  // 3 MB, and neither makes DNS answers cheaper: Maglev compiles their code. Set between these two: before anything is
  // loaded, because compiled code is used only with the flags that it was made with, and after Node has named its folder by the usual flags.
  setFlagsFromString("--semi-space-growth-factor=1");
  setFlagsFromString("--no-turbofan");
  setFlagsFromString("--no-sparkplug");
  await import("./coxswain-services.ts");
}
