#!/usr/bin/env node
import { readCompiledCode } from "@coxswain/apimachinery/flags/compiled-code";

readCompiledCode(import.meta.dirname);
await import("./kubelet.ts");
