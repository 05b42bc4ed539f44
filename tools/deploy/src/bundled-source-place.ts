/** Replaces `logging/source-place.ts` of apimachinery in the bundle. */
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { type CallSites, sourceOf } from "./call-sites.ts";

let tables: Record<string, CallSites> | undefined;

/** Maps a stack frame in the bundle (file URL, line) to the source; returns it unchanged when unknown. */
export function sourcePlace(file: string, line: number): { file: string; line: number } {
  tables ??= read();
  const name = basename(file);
  const table = Object.hasOwn(tables, name) ? tables[name] : undefined;
  return (table && sourceOf(table, line)) ?? { file, line };
}

function read(): Record<string, CallSites> {
  try {
    return JSON.parse(readFileSync(new URL("./call-sites.json", import.meta.url), "utf8"));
  } catch {
    return {}; // missing or damaged tables must not prevent logging
  }
}
