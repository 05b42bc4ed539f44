import { readFileSync } from "node:fs";

/** What `./cox test` was asked for. */
export interface Options {
  readonly long: boolean;
  /** Only the tests in these files and below these folders; relative to the repository. Empty: everything, the checks too. */
  readonly paths: readonly string[];
  /** As `node --test-name-pattern` takes them: a test runs when one of them matches its name. */
  readonly namePatterns: readonly string[];
}

/** The same file as `./cox test --help` prints before anything is installed. */
export const help = (): string => readFileSync(new URL("../../dev-cluster/help/test.txt", import.meta.url), "utf8");

/** An argument that means nothing; the message says why. */
export class UsageError extends Error {}

/** @throws UsageError */
export function parseOptions(args: readonly string[]): Options | "help" {
  const paths: string[] = [];
  const namePatterns: string[] = [];
  let long = false;
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] as string;
    const [flag, inline] = arg.startsWith("--") ? splitFlag(arg) : [arg, undefined];
    if (flag === "--help" || flag === "-h") return "help";
    if (flag === "--long") {
      if (inline !== undefined) throw new UsageError("--long takes no value");
      long = true;
    } else if (flag === "--test-name-pattern") {
      const pattern = inline ?? args[++at];
      if (pattern === undefined || pattern === "") throw new UsageError("--test-name-pattern needs a regular expression");
      namePatterns.push(checkPattern(pattern));
    } else if (flag.startsWith("-")) throw new UsageError(`unknown flag ${flag}`);
    else paths.push(arg);
  }
  return { long, paths, namePatterns };
}

function splitFlag(arg: string): [string, string | undefined] {
  const at = arg.indexOf("=");
  return at < 0 ? [arg, undefined] : [arg.slice(0, at), arg.slice(at + 1)];
}

/** As Node reads it: `/…/flags`, or the expression alone. */
function checkPattern(pattern: string): string {
  const literal = /^\/(.*)\/([a-z]*)$/s.exec(pattern);
  try {
    new RegExp(literal?.[1] ?? pattern, literal?.[2] ?? "");
  } catch (err) {
    throw new UsageError(`--test-name-pattern: ${(err as Error).message}`);
  }
  return pattern;
}

/**
 * The test files that the paths mean, in their order; all of them without a path.
 * @param tests all test files; like the paths relative to the repository
 * @throws UsageError for a path that means none
 */
export function selectTests(tests: readonly string[], paths: readonly string[]): string[] {
  const isBelow = (file: string, path: string): boolean => path === "." || file === path || file.startsWith(`${path}/`);
  for (const path of paths)
    if (!tests.some((file) => isBelow(file, path)))
      throw new UsageError(`${path}: no test file there (tests are *.test.ts in packages/*/src, tools/*/src and e2e)`);
  return paths.length === 0 ? [...tests] : tests.filter((file) => paths.some((path) => isBelow(file, path)));
}
