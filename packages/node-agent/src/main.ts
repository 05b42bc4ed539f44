#!/usr/bin/env node
import { printVersionAlone, quickenImports } from "@coxswain/apimachinery/flags/quick-imports";

if (!printVersionAlone(process.argv.slice(2))) {
  quickenImports(import.meta.dirname);
  await import("./kubelet.ts");
}
