import { SourceMap, type SourceMapPayload } from "node:module";

/**
 * Line mapping from a bundled file to its sources. `runs` has three numbers per run of consecutive lines: first line in the
 * bundle, index into `sources`, first line in the source. Lines count from 1.
 */
export interface CallSites {
  readonly sources: readonly string[];
  readonly runs: readonly number[];
}

/** Reduces a source map to the lines of our own sources; the full map would take more memory than the daemon. */
export function callSitesOf(code: string, payload: SourceMapPayload): CallSites {
  const map = new SourceMap(payload);
  const names: string[] = [];
  const runs: number[] = [];
  let before = { line: 0, source: -1, sourceLine: 0 };
  for (const [i, text] of code.split("\n").entries()) {
    const entry = map.findEntry(i, text.search(/\S|$/));
    // Skips lines added by the bundler (no source) and lines without a mapping.
    if (!("originalSource" in entry) || !entry.originalSource || entry.generatedLine !== i) continue;
    if (entry.originalSource.includes("node_modules/")) continue;
    const name = entry.originalSource.replace(/^(?:\.\.\/)+/, "");
    const known = names.indexOf(name);
    const place = { line: i + 1, source: known < 0 ? names.push(name) - 1 : known, sourceLine: entry.originalLine + 1 };
    const follows =
      place.line - before.line === 1 && place.sourceLine - before.sourceLine === 1 && place.source === before.source;
    if (!follows) runs.push(place.line, place.source, place.sourceLine);
    before = place;
  }
  return { sources: names, runs };
}

/** @returns undefined for lines not from our sources. */
export function sourceOf({ sources, runs }: CallSites, line: number): { file: string; line: number } | undefined {
  let low = 0;
  let high = runs.length / 3;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (runs[middle * 3]! <= line) low = middle + 1;
    else high = middle;
  }
  if (low === 0) return undefined;
  const [first = 0, source = 0, sourceLine = 0] = runs.slice((low - 1) * 3, low * 3);
  const file = sources[source];
  return file === undefined ? undefined : { file, line: sourceLine + line - first };
}
