import { help, type Options, parseOptions, selectTests, UsageError } from "./options.ts";

/** Reads the arguments; ends the process for `--help` (0) and for what means nothing (2). @param normal a path as test files are named */
export function parseArguments(
  args: readonly string[],
  tests: readonly string[],
  normal: (path: string) => string,
): { options: Options; selected: string[] } {
  try {
    const options = parseOptions(args);
    if (options === "help") {
      process.stdout.write(help());
      process.exit(0);
    }
    const paths = options.paths.map((path) => normal(path) || ".");
    return { options: { ...options, paths }, selected: selectTests(tests, paths) };
  } catch (err) {
    if (!(err instanceof UsageError)) throw err;
    process.stderr.write(`cox test: ${err.message}\nRun './cox test --help' for what it takes.\n`);
    process.exit(2);
  }
}
