import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Functions of a file that tests executed: `start-end` (offsets in the file) to indexes of test files. */
type Functions = Readonly<Record<string, readonly number[]>>;

interface Executed {
  /** Test files, relative to the repository. */
  readonly tests: readonly string[];
  /** By path relative to the repository. */
  readonly files: Readonly<Record<string, Functions>>;
}

/** What V8 writes to the folder NODE_V8_COVERAGE when a process ends; see Node's documentation of that variable. */
interface Report {
  readonly result: readonly {
    readonly url: string;
    readonly functions: readonly {
      readonly ranges: readonly { readonly startOffset: number; readonly endOffset: number; readonly count: number }[];
    }[];
  }[];
}

/** The reports take seconds to read, so their summary is kept beside them. */
const summaryName = "executed.summary";

/**
 * Reads the coverage of a run of tests: `NODE_V8_COVERAGE=<folder> ./cox test packages tools`. Files that have shared a process count as
 * having executed all that one of them did. Programs that a test has started are not included.
 */
export function readCoverage(folder: string): Executed {
  const summary = join(folder, summaryName);
  if (existsSync(summary)) return JSON.parse(readFileSync(summary, "utf8"));
  const executed = summarized(
    readdirSync(folder)
      .filter((name) => name.endsWith(".json"))
      .values()
      .map((name) => JSON.parse(readFileSync(join(folder, name), "utf8"))),
  );
  writeFileSync(summary, JSON.stringify(executed));
  return executed;
}

export function summarized(reports: Iterable<Report>): Executed {
  const tests = new Map<string, number>();
  const files = new Map<string, Map<string, Set<number>>>();
  for (const { result } of reports) {
    const scripts = result.map((script) => ({ ...script, file: fileOf(script.url) }));
    const mine = scripts
      .filter(({ file }) => file?.endsWith(".test.ts"))
      .map(({ file }) => tests.getOrInsertComputed(file!, () => tests.size));
    for (const { file, functions } of scripts) {
      if (file === undefined || file.endsWith(".test.ts")) continue;
      const known = files.getOrInsertComputed(file, () => new Map());
      for (const { ranges } of functions) {
        const [whole] = ranges;
        if (whole === undefined || whole.count === 0) continue;
        const by = known.getOrInsertComputed(`${whole.startOffset}-${whole.endOffset}`, () => new Set());
        for (const test of mine) by.add(test);
      }
    }
  }
  return {
    tests: [...tests.keys()],
    files: Object.fromEntries(
      [...files].map(([file, known]) => [file, Object.fromEntries([...known].map(([key, by]) => [key, [...by]]))]),
    ),
  };
}

/** Without the folder of the repository, so that another checkout can use the coverage. */
const fileOf = (url: string): string | undefined =>
  url.includes("/node_modules/") ? undefined : /^file:.*\/((?:packages|tools)\/[^/]+\/src\/[^?]+\.ts)(?:\?|$)/.exec(url)?.[1];

/** Test files that executed the innermost function around an offset; all those that loaded the file, when that is none. */
export function executedBy({ tests, files }: Executed, file: string, offset: number): ReadonlySet<string> {
  const around = Object.entries(files[file] ?? {})
    .map(([key, by]) => ({ range: key.split("-").map(Number) as [number, number], by })) // cast: two numbers, see summarized
    .filter(({ range: [start, end] }) => start <= offset && offset < end)
    .sort((a, b) => a.range[1] - a.range[0] - (b.range[1] - b.range[0]));
  return new Set(around[0]?.by.map((index) => tests[index]!));
}

/** @returns tests that executed the place first, each part in its own order */
export const executingFirst = (tests: readonly string[], executing: ReadonlySet<string>): string[] => [
  ...tests.filter((test) => executing.has(test)),
  ...tests.filter((test) => !executing.has(test)),
];
