#!/usr/bin/env node
import { setFlagsFromString } from "node:v8";
import { printVersionAlone, quickenImports } from "@coxswain/apimachinery/flags/quick-imports";

if (!printVersionAlone(process.argv.slice(2))) {
  // The process runs on every node, does little for most of its time, and shall stay small (docs/benchmarks.md). V8 would let the
  // young generation grow to 24 MB, which a process that allocates little fills and keeps; its second optimizing compiler takes
  // 6 MB and its baseline compiler 3 MB, and neither makes DNS answers cheaper, which the first optimizing one compiles. Set before anything is loaded: stored compiled code is used only with the same flags.
  setFlagsFromString("--semi-space-growth-factor=1");
  setFlagsFromString("--no-turbofan");
  setFlagsFromString("--no-sparkplug");
  quickenImports(import.meta.dirname);
  await import("./coxswain-services.ts");
}
