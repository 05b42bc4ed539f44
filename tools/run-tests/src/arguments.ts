import { help, type Options, parseOptions, selectTests, UsageError } from "./options.ts";

/**
 * Parses the arguments; exits for `--help` (code 0) and for invalid arguments (code 2).
 * @param normal normalizes a path to the form of test file names
 */
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
