import { readFileSync } from "node:fs";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";

/** Options of `./cox test`. */
export interface Options {
  readonly long: boolean;
  /** Duration of a run with `long`; undefined: a whole night. */
  readonly hours?: number;
  /** Files and folders, relative to the repository, to which the run is limited. Empty: all tests and checks. */
  readonly paths: readonly string[];
  /** Patterns of `node --test-name-pattern`: a test runs when one of them matches its name. */
  readonly namePatterns: readonly string[];
}

/** The text that `./cox test --help` prints when nothing is installed yet. */
export const help = (): string => readFileSync(new URL("../../dev-cluster/help/test.txt", import.meta.url), "utf8");

/** An invalid argument; the message is for the user. */
export class UsageError extends Error {}

/** @throws UsageError for an invalid argument */
export function parseOptions(args: readonly string[]): Options | "help" {
  const paths: string[] = [];
  const namePatterns: string[] = [];
  let long = false;
  let hours: number | undefined;
  for (let at = 0; at < args.length; at++) {
    const arg = args[at]!;
    const [flag, inline] = arg.startsWith("--") ? splitFlag(arg) : [arg, undefined];
    if (flag === "--help" || flag === "-h") return "help";
    if (flag === "--long") {
      if (inline !== undefined) throw new UsageError("--long takes no value");
      long = true;
    } else if (flag === "--hours") hours = checkHours(inline ?? args[++at]);
    else if (flag === "--test-name-pattern") {
      const pattern = inline ?? args[++at];
      if (pattern === undefined || pattern === "") throw new UsageError("--test-name-pattern needs a regular expression");
      namePatterns.push(checkPattern(pattern));
    } else if (flag.startsWith("-")) throw new UsageError(`unknown flag ${flag}`);
    else paths.push(arg);
  }
  if (hours !== undefined && !long) throw new UsageError("--hours needs --long");
  return { long, ...(hours !== undefined && { hours }), paths, namePatterns };
}

function checkHours(text: string | undefined): number {
  const hours = /^\d+(?:\.\d+)?$/.test(text ?? "") ? Number(text) : 0;
  if (hours <= 0 || hours > 48) throw new UsageError("--hours needs a number of hours, more than 0 and at most 48, e.g. 1.5");
  return hours;
}

function splitFlag(arg: string): [string, string | undefined] {
  const at = arg.indexOf("=");
  return at < 0 ? [arg, undefined] : [arg.slice(0, at), arg.slice(at + 1)];
}

/** Checks a pattern in Node's syntax: `/…/flags`, or the bare expression. */
function checkPattern(pattern: string): string {
  const literal = /^\/(.*)\/([a-z]*)$/s.exec(pattern);
  try {
    new RegExp(literal?.[1] ?? pattern, literal?.[2] ?? "");
  } catch (err) {
    throw new UsageError(`--test-name-pattern: ${messageOf(err)}`);
  }
  return pattern;
}

/**
 * Selects the test files for the paths, in order; all files without paths.
 * @param tests all test files, relative to the repository like the paths
 * @throws UsageError for a path without tests
 */
export function selectTests(tests: readonly string[], paths: readonly string[]): string[] {
  const isBelow = (file: string, path: string): boolean => path === "." || file === path || file.startsWith(`${path}/`);
  for (const path of paths)
    if (!tests.some((file) => isBelow(file, path)))
      throw new UsageError(`${path}: no test file there (tests are *.test.ts in packages/*/src, tools/*/src, e2e and examples)`);
  return paths.length === 0 ? [...tests] : tests.filter((file) => paths.some((path) => isBelow(file, path)));
}
