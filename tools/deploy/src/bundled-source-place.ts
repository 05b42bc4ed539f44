/** Stands in the bundle for `logging/source-place.ts` of apimachinery. */
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { type CallSites, sourceOf } from "./call-sites.ts";

let tables: Record<string, CallSites> | undefined;

/** The place in the sources of a stack frame, a file's URL and a line of the bundle; the frame's own when that is not known. */
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
    return {}; // a log line with another place is better than none
  }
}
