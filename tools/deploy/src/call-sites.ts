import { SourceMap, type SourceMapPayload } from "node:module";

/**
 * Which line of which source each line of a bundled file was made from. `runs` has three numbers for each stretch of lines that
 * follow each other in both: the first line of the file, the source's place in `sources`, its first line there. Lines count from 1.
 */
export interface CallSites {
  readonly sources: readonly string[];
  readonly runs: readonly number[];
}

/** Keeps of a file's source map what a log line says, of our own sources: the map itself would take more memory than the daemon. */
export function callSitesOf(code: string, payload: SourceMapPayload): CallSites {
  const map = new SourceMap(payload);
  const names: string[] = [];
  const runs: number[] = [];
  let before = { line: 0, source: -1, sourceLine: 0 };
  for (const [i, text] of code.split("\n").entries()) {
    const entry = map.findEntry(i, text.search(/\S|$/));
    // Without a source: what the bundler added. With another line: the line has nothing of its own.
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

/** @returns undefined for a line that is not from our sources. */
export function sourceOf({ sources, runs }: CallSites, line: number): { file: string; line: number } | undefined {
  let low = 0;
  let high = runs.length / 3;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((runs[middle * 3] as number) <= line) low = middle + 1;
    else high = middle;
  }
  if (low === 0) return undefined;
  const [first = 0, source = 0, sourceLine = 0] = runs.slice((low - 1) * 3, low * 3);
  const file = sources[source];
  return file === undefined ? undefined : { file, line: sourceLine + line - first };
}
