#!/usr/bin/env node
import { quickenImports } from "@coxswain/apimachinery/flags/quick-imports";

quickenImports(import.meta.dirname);
await import("./coxswain-services.ts");
