import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { diffOf } from "./diff.ts";
import type { Overlay } from "./in-process/messages.ts";
import { TestWorker } from "./in-process/test-worker.ts";
import { type Mutant, mutatedText } from "./mutants.ts";
import type { Outcome } from "./report.ts";
import { runTest, type TestRun } from "./run-test.ts";

export interface SessionOptions {
  readonly root: string;
  readonly timeoutMs: number;
  /** Test files for a mutant, the most relevant first. */
  readonly testsOf: (mutant: Mutant) => readonly string[];
  /** The file and all that reach it by imports. */
  readonly dependentsOf: (file: string) => readonly string[];
  readonly warn: (text: string) => void;
}

/** What these measure depends on what the process has loaded, compiled and allocated before. */
const measures =
  /cpu-time|turn-sizes|memoryUsage|heapUsed|eventLoopDelay|monitorEventLoop|collectGarbage|node-flags|refusal-sites/;

/**
 * Runs mutants, several at a time if called so. Mutated texts are in a temporary folder, removed by `close`.
 *
 * Most test files run in a process that is kept (in-process/), which takes a tenth of the time of a new one. A failure there counts only if the
 * same test passes there without the mutation; other files run in a process of their own.
 */
export class Session {
  readonly #options: SessionOptions;
  readonly #folder = mkdtempSync(join(tmpdir(), "cox-mutate-"));
  /** Whether test files pass without mutation, in a process of their own. */
  readonly #passes = new Map<string, Promise<boolean>>();
  /** The same in a kept process, by test file and mutated file. */
  readonly #passesKept = new Map<string, Promise<boolean>>();
  readonly #idle: TestWorker[] = [];
  readonly #workers = new Set<TestWorker>();

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
    for (const test of testsOf(mutant)) {
      if ((await this.#passes.get(test)) === false) continue;
      const run = (await this.#runKept(test, mutant.file, { file, source })) ?? (await this.#run(test, { file, source }));
      seconds += run.seconds;
      tests++;
      // A test that fails without the mutation too has not detected it.
      if (run.result !== "passed" && (run.isKept || (await this.#passesWithout(test))))
        return { mutant, diff, result: run.result === "failed" ? "caught" : run.result, by: test, tests, seconds };
    }
    return { mutant, diff, result: tests === 0 ? "no tests" : "survived", tests, seconds };
  }

  close(): void {
    for (const worker of this.#workers) worker.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Runs a test in a process of its own. */
  async #run(test: string, overlay?: Overlay): Promise<TestRun & { readonly isKept: boolean }> {
    return { ...(await runTest(this.#options.root, test, this.#options.timeoutMs, overlay)), isKept: false };
  }

  /** Runs a test in a kept process. @returns undefined when its result there says nothing about the mutation */
  async #runKept(test: string, file: string, overlay: Overlay): Promise<(TestRun & { readonly isKept: boolean }) | undefined> {
    const key = `${test}\n${file}`;
    const known = await this.#passesKept.get(key);
    if (known === false || measures.test(readFileSync(join(this.#options.root, test), "utf8"))) return undefined;
    const run = await this.#onWorker(test, file, overlay);
    if (run.result === "passed") return { ...run, isKept: true };
    // May come from what an earlier run left behind.
    if (run.output.startsWith("uncaught")) return undefined;
    const passes = await this.#passesKept.getOrInsertComputed(
      key,
      async () => (await this.#onWorker(test, file)).result === "passed",
    );
    return passes ? { ...run, isKept: true } : undefined;
  }

  async #onWorker(test: string, file: string, overlay?: Overlay): Promise<TestRun> {
    const { root, dependentsOf, timeoutMs } = this.#options;
    const worker = this.#idle.pop() ?? new TestWorker(root);
    this.#workers.add(worker);
    const reload = dependentsOf(file).map((path) => join(root, path));
    const run = await worker.run({ test: join(root, test), reload, overlay }, timeoutMs);
    this.#idle.push(worker);
    return run;
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
