#!/usr/bin/env node
import { printVersionAlone, quickenImports } from "@coxswain/apimachinery/flags/quick-imports";
import { addFileThreads } from "./host/file-threads.ts";

if (!printVersionAlone(process.argv.slice(2))) {
  addFileThreads(process.env);
  quickenImports(import.meta.dirname);
  await import("./kubelet.ts");
}
