import { parseArgs } from "node:util";
import { kinds } from "./mutants.ts";

export interface Options {
  /** Files or folders to mutate, relative to the repository. */
  readonly folders: readonly string[];
  readonly count: number;
  readonly seed: number;
  /** Names of kinds; empty for all. */
  readonly kinds: readonly string[];
  /** IDs of mutants; empty for all. */
  readonly only: readonly string[];
  readonly mostTests: number;
  /** Faults that are tried at the same time. */
  readonly lanes: number;
  readonly timeoutSeconds: number;
  readonly minCaught: number;
  readonly json: string | undefined;
  /** A JSON file of hand-written faults, tried instead of drawn ones. */
  readonly faults: string | undefined;
  /** Folder of V8 coverage of the tests, by which they are ordered. */
  readonly coverage: string | undefined;
  readonly list: boolean;
}

export const usage = `usage: node tools/mutate/src/main.ts [flags] <folder or file>...
       node tools/mutate/src/main.ts [flags] --faults FILE [<folder>...]

Mutation testing: injects one fault at a time into the code below the folders, runs the tests that reach it,
and shows the faults that no test detects. The working tree is never changed.

  --count N         faults that are tried; default 20
  --seed N          the same seed draws the same faults of the same code; default 1
  --kind NAME       only faults of this kind; may be given several times
  --only ID         only this fault, as an earlier run named it; may be given several times
  --tests N         test files that are run for one fault at most, the nearest first; default 30
  --lanes N         faults that are tried at the same time; default 1
  --timeout SECONDS of one test file; a fault that makes a test hang counts as caught, and is listed; default 60
  --min-caught N    percent that must be caught, otherwise the exit code is 1; default 95
  --json FILE       writes the results to FILE too
  --faults FILE     tries the faults of this JSON file, [{"file", "old", "new", "why"}], instead of drawn ones: "old" occurs
                    once in the file; tests below the folders are run first
  --coverage DIR    runs the tests first that executed the function of the fault in NODE_V8_COVERAGE=DIR ./cox test packages tools
  --list            shows the faults that would be tried, and runs nothing
  --help            shows this text

kinds of faults:
${kinds.map(({ name, what }) => `  ${name.padEnd(17)} ${what}`).join("\n")}

Survivors that change nothing which a test could notice stand in tools/mutate/equivalent.json with the reason, and
are not drawn again.
exit codes: 0 enough were caught, 1 too few were, 2 the run itself failed`;

/** An invalid command line; the message is for the user. */
export class UsageError extends Error {}

/** @returns undefined for `--help`. @throws UsageError */
export function optionsOf(args: readonly string[]): Options | undefined {
  const { values, positionals } = parsed(args);
  if (values.help) return undefined;
  if (positionals.length === 0 && values.faults === undefined)
    throw new UsageError("name at least one folder or file, e.g. packages/scheduler/src/queue");
  const unknown = values.kind.find((name) => kinds.every((kind) => kind.name !== name));
  if (unknown !== undefined) throw new UsageError(`there is no kind ${unknown}; --help shows them`);
  return {
    folders: positionals.map((folder) => folder.replace(/^\.\//, "").replace(/\/+$/, "")),
    count: wholeNumber("count", values.count),
    seed: wholeNumber("seed", values.seed),
    kinds: values.kind,
    only: values.only,
    mostTests: wholeNumber("tests", values.tests),
    lanes: Math.max(1, wholeNumber("lanes", values.lanes)),
    timeoutSeconds: wholeNumber("timeout", values.timeout),
    minCaught: wholeNumber("min-caught", values["min-caught"]),
    json: values.json,
    faults: values.faults,
    coverage: values.coverage,
    list: values.list,
  };
}

function parsed(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        count: { type: "string", default: "20" },
        seed: { type: "string", default: "1" },
        kind: { type: "string", multiple: true, default: [] },
        only: { type: "string", multiple: true, default: [] },
        tests: { type: "string", default: "30" },
        lanes: { type: "string", default: "1" },
        timeout: { type: "string", default: "60" },
        "min-caught": { type: "string", default: "95" },
        json: { type: "string" },
        faults: { type: "string" },
        coverage: { type: "string" },
        list: { type: "boolean", default: false },
        help: { type: "boolean", short: "h", default: false },
      },
    });
  } catch (err) {
    throw new UsageError((err as Error).message); // cast: parseArgs throws TypeErrors
  }
}

function wholeNumber(flag: string, value: string): number {
  if (!/^\d{1,9}$/.test(value)) throw new UsageError(`--${flag} takes a whole number, not ${value}`);
  return Number(value);
}
