import { basename, dirname, join, normalize } from "node:path";

/** Imports of each file, by path relative to the repository. */
type ImportGraph = ReadonlyMap<string, readonly string[]>;

/** @param texts all sources by path: `packages/<package>/src/…`, `tools/<tool>/src/…` */
export function importGraph(texts: ReadonlyMap<string, string>): ImportGraph {
  return new Map(
    [...texts].map(([file, text]) => [
      file,
      namesIn(text)
        .map((name) => resolved(file, name))
        .filter((target): target is string => target !== undefined && texts.has(target)),
    ]),
  );
}

/**
 * Static and dynamic imports, re-exports, and what is started or loaded by its path: `new URL("main.ts", import.meta.url)`,
 * `join(import.meta.dirname, "main.ts")`.
 */
function namesIn(text: string): string[] {
  const imports = /(?:^|[\n;])\s*(?:import|export)\s(?:[^;"']*?\sfrom\s)?\s*["']([^"']+)["']|\bimport\(\s*["']([^"']+)["']/g;
  const paths = /\bnew URL\(\s*["'`]([^"'`]+)["'`],\s*import\.meta\.url|\bimport\.meta\.dirname,\s*["']([^"']+\.ts)["']/g;
  const named = (match: RegExpExecArray): string => (match[1] ?? match[2])!;
  const loaded = [...text.matchAll(paths)].map((match) => `./${named(match).replace(/\$\{extname\([^)]*\)\}$/, ".ts")}`);
  return [...Array.from(text.matchAll(imports), named), ...loaded];
}

function resolved(file: string, name: string): string | undefined {
  if (name.startsWith(".")) return normalize(join(dirname(file), name));
  const [, own, path = "index"] = /^@coxswain\/([^/]+)(?:\/(.+))?$/.exec(name) ?? [];
  return own === undefined ? undefined : `packages/${own}/src/${path}.ts`;
}

/** Their tests run whole clusters or build releases: they import nearly every file and take minutes, so they only count for their own files. */
const wholeClusters = ["packages/testing/", "tools/deploy/", "tools/dev-cluster/", "tools/publish/", "tools/simulate/"];

/**
 * Test files that reach a file by imports, the most relevant first: of the same name, in the same folder, in a folder above, there first
 * those with the file's name in theirs (`tables.test.ts` for `events/table.ts`), in the requested folders, then by import distance.
 * Without those that run whole clusters.
 */
export function testsOf(file: string, graph: ImportGraph, folders: readonly string[]): string[] {
  const distance = distancesTo(file, graph);
  const rank = (test: string): number => {
    const stem = basename(file, ".ts");
    if (dirname(test) === dirname(file))
      return basename(test) === `${stem}.test.ts` ? 0 : basename(test).startsWith(stem) ? 1 : 2;
    if (file.startsWith(`${dirname(test)}/`) && !dirname(test).endsWith("/src")) return basename(test).includes(stem) ? 3 : 4;
    return folders.some((folder) => test.startsWith(`${folder}/`)) ? 5 : 6;
  };
  return [...distance.keys()]
    .filter((path) => path.endsWith(".test.ts"))
    .filter((path) => !wholeClusters.some((folder) => path.startsWith(folder) && !file.startsWith(folder)))
    .sort((a, b) => rank(a) - rank(b) || (distance.get(a) ?? 0) - (distance.get(b) ?? 0) || (a < b ? -1 : 1));
}

/** The file, and all files that reach it by imports. */
export const dependentsOf = (file: string, graph: ImportGraph): string[] => [...distancesTo(file, graph).keys()];

function distancesTo(file: string, graph: ImportGraph): Map<string, number> {
  const importers = new Map<string, string[]>();
  for (const [from, targets] of graph) for (const to of targets) importers.set(to, [...(importers.get(to) ?? []), from]);
  const distance = new Map([[file, 0]]);
  for (const [at, steps] of distance) // the map grows during iteration (breadth-first search)
    for (const importer of importers.get(at) ?? []) if (!distance.has(importer)) distance.set(importer, steps + 1);
  return distance;
}
