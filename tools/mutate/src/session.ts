import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { diffOf } from "./diff.ts";
import { type Mutant, mutatedText } from "./mutants.ts";
import type { Outcome } from "./report.ts";
import { runTest, type TestRun } from "./run-test.ts";

interface SessionOptions {
  readonly root: string;
  readonly timeoutMs: number;
  /** Test files for a source file, the most relevant first. */
  readonly testsOf: (file: string) => readonly string[];
  readonly warn: (text: string) => void;
}

/** Runs mutants, several at a time if called so. Mutated texts are in a temporary folder, removed by `close`. */
export class Session {
  readonly #options: SessionOptions;
  readonly #folder = mkdtempSync(join(tmpdir(), "cox-mutate-"));
  /** Whether test files pass without mutation. */
  readonly #passes = new Map<string, Promise<boolean>>();

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  /** @param before unmutated text of the file */
  async try(mutant: Mutant, before: string): Promise<Outcome> {
    const { root, testsOf } = this.#options;
    const file = join(root, mutant.file);
    const after = mutatedText(before, mutant);
    const source = join(this.#folder, mutant.id, basename(mutant.file));
    mkdirSync(join(this.#folder, mutant.id), { recursive: true });
    writeFileSync(source, after);
    const diff = diffOf(before, after);
    let seconds = 0;
    let tests = 0;
    for (const test of testsOf(mutant.file)) {
      if ((await this.#passes.get(test)) === false) continue;
      const run = await this.#run(test, { file, source });
      seconds += run.seconds;
      tests++;
      // A test that fails without the mutation too has not detected it.
      if (run.result !== "passed" && (await this.#passesWithout(test)))
        return { mutant, diff, result: run.result === "failed" ? "caught" : run.result, by: test, tests, seconds };
    }
    return { mutant, diff, result: tests === 0 ? "no tests" : "survived", tests, seconds };
  }

  close(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #run(test: string, overlay?: { file: string; source: string }): Promise<TestRun> {
    return runTest(this.#options.root, test, this.#options.timeoutMs, overlay);
  }

  #passesWithout(test: string): Promise<boolean> {
    return this.#passes.getOrInsertComputed(test, async () => {
      const { result, output } = await this.#run(test);
      const passes = result === "passed";
      if (!passes) this.#options.warn(`${test} ${result} without any fault and is left out:\n${output.slice(-1000)}`);
      return passes;
    });
  }
}
