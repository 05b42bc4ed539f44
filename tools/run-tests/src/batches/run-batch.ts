import { join } from "node:path";
import { type Ending, type Reported, resultOf } from "../reported.ts";
import { type FileRun, type RunOptions, runProcess } from "../run-file.ts";

const program = join(import.meta.dirname, "process.ts");

interface TogetherOptions extends RunOptions {
  readonly runAlone: (file: string) => Promise<FileRun>;
  /** Called when the files did not all pass in one process, before they run again. */
  readonly onSeparated: (why: string) => void;
}

/**
 * Runs test files one after the other in one process, which saves the start of a process and the loading of common modules for each.
 * When they do not all pass, each runs again in a process of its own, and the result of a file is that: only there it is certain
 * what is wrong, where, and what was printed.
 * @param files relative to the root
 */
export async function* runTogether(files: readonly string[], options: TogetherOptions): AsyncGenerator<FileRun> {
  const { runAlone, onSeparated, signal } = options;
  if (files.length > 1) {
    const env = { ...options.env, COX_TEST_BATCH: "1" };
    const { lines, ending } = await runProcess([program, ...files], { ...options, env });
    const together = resultsOf(files, lines, ending);
    if (!("why" in together)) return yield* together;
    if (!signal.aborted) onSeparated(together.why);
  }
  for (const file of files) if (!signal.aborted) yield await runAlone(file);
}

/** Pure: the results of files that ran in one process, or why they do not count. */
function resultsOf(
  files: readonly string[],
  lines: readonly Reported[],
  ending: Ending,
): readonly FileRun[] | { readonly why: string } {
  const runs: FileRun[] = [];
  let from = 0;
  for (const [at, line] of lines.entries()) {
    if (line.kind === "file") from = at;
    if (line.kind !== "end of file") continue;
    const begin = lines[from];
    const { file } = line;
    const result = resultOf(file, [...lines.slice(from, at), { kind: "summary" }], { code: 0 });
    if (begin?.kind !== "file" || begin.file !== file || file !== files[runs.length])
      return { why: `a test outside of a file: ${file}` };
    const [failed] = result.failed;
    if (failed !== undefined) return { why: `${file} fails: ${failed.name}: ${failed.error}` };
    if (!line.isPassed) return { why: `${file} fails` };
    if (result.outcomes.length === 0) return { why: `${file} has no tests` };
    runs.push({ ...result, file, durationMs: line.atMs - begin.atMs, output: "" });
  }
  const next = files[runs.length];
  const { failed } = resultOf("the process", lines, ending);
  if (failed[0] !== undefined) return { why: `${failed[0].error}${next === undefined ? "" : `, in ${next}`}` };
  return next === undefined ? runs : { why: `${next} did not run` };
}
