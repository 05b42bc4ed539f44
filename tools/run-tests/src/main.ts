import { execFileSync, spawn } from "node:child_process";
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cpus, loadavg, totalmem } from "node:os";
import { join, relative, resolve } from "node:path";
import { parseArguments } from "./arguments.ts";
import { batchesOf } from "./batches/batches.ts";
import { runTogether } from "./batches/run-batch.ts";
import { inNetworkOfItsOwn, lanesOf, longestFirst, nodeFlags, slow } from "./lanes.ts";
import { longRunOf, mutation, nightHours, type PlannedForm, planOf } from "./long-forms.ts";
import { longReport } from "./long-report.ts";
import { busyMs } from "./machine-load.ts";
import { addFile, addRepeated, addSeparated, closingReport, exitCode, fileReport, newTotals } from "./report.ts";
import { type FileRun, type Limits, runFile } from "./run-file.ts";

/**
 * `main.ts [flags] [path…]`: runs all checks of the repository, cheap ones first; with paths only the tests there.
 * See options.ts for the flags, report.ts for the output.
 */
const root = resolve(import.meta.dirname, "..", "..", "..");
const tests = globSync(["packages/*/src/**/*.test.ts", "tools/*/src/**/*.test.ts", "e2e/**/*.test.ts", "examples/**/*.test.ts"], {
  cwd: root,
  exclude: (name) => name === "node_modules",
});
const { options, selected } = parseArguments(process.argv.slice(2), tests.sort(), (path) => relative(root, resolve(root, path)));
const { long, hours = nightHours, paths, namePatterns } = options;
const plan = long ? planOf(hours) : [];
/** True when nothing was selected: the result applies to the repository. */
const isWhole = paths.length === 0 && namePatterns.length === 0;
/** Limit of failed files that are run again, to tell flaky tests from broken ones; a larger number of failures has a common cause. */
let repeatsLeft = isWhole && !long ? 2 : 0;
const isEndToEnd = (file: string): boolean => file.startsWith("e2e/");

const busyBeforeMs = busyMs();
const begun = new Date().toISOString();
const totals = newTotals();
const runs: FileRun[] = [];
/** Files that were skipped as a whole. */
const unrunFiles: string[] = [];
const interrupted = new AbortController();
for (const [name, number] of [
  ["SIGHUP", 1],
  ["SIGINT", 2],
  ["SIGTERM", 15],
] as const)
  process.once(name, () => interrupted.abort(128 + number));

const bin = (name: string): string => join(root, "node_modules", ".bin", name);
const node = (...rest: string[]): string[] => [process.execPath, "-C", "cox-source", ...rest];

/** Separates the test cluster from the developer's; `up` chooses free ports and networks. */
const e2eEnv = {
  COX_STATE: ".cox/e2e",
  COX_NODE_NAME: "e2e-node",
  COX_AUDIT_POLICY: "e2e/framework/audit-policy.yaml",
  // Tests kill processes, not the machine. Without fsync a slow disk cannot cause the loss of a leader lease.
  COX_ETCD_WITHOUT_SYNC: "1",
};

if (isWhole) {
  await check("lint", [bin("biome"), "check", "--diagnostic-level=error", "."]);
  await check("promises", [bin("oxlint"), "--tsconfig", "tsconfig.check.json"]);
  await check("types and build", [bin("tsc"), "--build"]);
  await check("types of tests and tools", [bin("tsc"), "--noEmit", "-p", "tsconfig.check.json"]);
  await check("layers", node("tools/check-layers/src/main.ts"));
  await check("docs", node("tools/check-docs/src/main.ts"));
}
const prepared = await prepareClusters(selected.filter(isEndToEnd));
const { shared, own } = lanesOf(prepared);
await Promise.all([onSharedCluster(shared), besideSharedCluster(own)]);
if (isWhole) await checkProofs();
if (long && isWhole) await mutationTests();
if (long) writeLongReport();

process.stdout.write(closingReport(totals, { durationMs: performance.now(), busyMs: busyMs() - busyBeforeMs }));
process.exitCode = interrupted.signal.aborted ? (interrupted.signal.reason as number) : exitCode(totals); // cast: aborted with the exit code

async function check(name: string, command: string[], limitMs?: number): Promise<boolean> {
  if (interrupted.signal.aborted) return false;
  return count(name, (await runStep(name, command, {}, limitMs)) === 0);
}

/** Adds a stage to the totals as one test. */
function count(name: string, isPassed: boolean): boolean {
  totals[isPassed ? "passed" : "failed"]++;
  if (!isPassed) totals.failures.push(name);
  return isPassed;
}

async function runTests(
  name: string,
  /** Files of a group run in one process. */
  groups: readonly (readonly string[])[],
  { concurrency = 1, env = {} }: { readonly concurrency?: number; readonly env?: Record<string, string> },
): Promise<void> {
  if (groups.length === 0) return;
  console.log(`== ${name}`);
  const begin = { ms: performance.now(), busyMs: busyMs() };
  const waiting = [...groups];
  const toRepeat: FileRun[] = [];
  const work = async (): Promise<void> => {
    for (let files = waiting.shift(); files !== undefined && !interrupted.signal.aborted; files = waiting.shift())
      await settle(files);
  };
  const settle = async (files: readonly string[]): Promise<void> => {
    for await (const run of runGroup(files, env)) {
      process.stdout.write(fileReport(run));
      if (run.failed.length > 0 && repeatsLeft > 0 && !interrupted.signal.aborted) {
        repeatsLeft--;
        toRepeat.push(run);
      } else {
        runs.push(run);
        addFile(totals, run);
      }
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  for (const first of toRepeat) {
    const second = await runOne(first.file, env);
    process.stdout.write(`repeated: ${fileReport(second)}`);
    runs.push(second);
    addRepeated(totals, first, second);
  }
  endStage(name, begin);
}

/** Runs the files of a group, in one process when there are several. */
function runGroup(files: readonly string[], env: Record<string, string>): AsyncGenerator<FileRun> {
  const limits: Limits = { testMs: 900_000, idleMs: 60_000, graceMs: 60_000 };
  return runTogether(files, {
    ...{ root, namePatterns: [], env, limits, signal: interrupted.signal },
    runAlone: (file) => runOne(file, env),
    onSeparated: (why) => addSeparated(totals, files, why),
  });
}

function runOne(file: string, env: Record<string, string>): Promise<FileRun> {
  const form = longRunOf(file, plan, runs);
  const limits: Limits = { testMs: Math.max(form?.fileMs ?? 0, 900_000), idleMs: 120_000, graceMs: 60_000 };
  return runFile(file, {
    root,
    namePatterns,
    env: { ...env, ...form?.env },
    limits: form === undefined ? limits : { ...limits, fileMs: form.fileMs },
    networkOfItsOwn: inNetworkOfItsOwn.includes(file),
    nodeFlags: nodeFlags[file],
    signal: interrupted.signal,
  });
}

/** Builds what clusters need. @returns the end-to-end files that can run */
async function prepareClusters(files: readonly string[]): Promise<readonly string[]> {
  if (files.length === 0 || interrupted.signal.aborted) return [];
  const without = (reason: string): readonly string[] => {
    notRun(files, reason);
    return [];
  };
  if (process.getuid?.() !== 0) return without("the end-to-end tests need root, for containers");
  const isBuilt = isWhole || (await check("build", [bin("tsc"), "--build"]));
  if (!isBuilt) return without("the packages were not built");
  await runStep("build the page", node("tools/build-ui/src/main.ts"));
  await runStep("compile ahead", node("tools/dev-cluster/src/compile-ahead.ts"));
  return files;
}

/**
 * Runs three files at a time, because they mostly wait. The shared cluster's files take longer than those with their own clusters;
 * unit tests, which use the most CPU, come last and fill the remaining time.
 */
async function besideSharedCluster(own: readonly string[]): Promise<void> {
  await runTests(
    "end to end, separate clusters",
    own.map((file) => [file]),
    { concurrency: 3, env: e2eEnv },
  );
  await runTests("unit and integration", groupsOf(selected.filter((file) => !isEndToEnd(file))), { concurrency: 3 });
}

/** Slow files first, each alone; then files that run together, last other ones that run alone. */
function groupsOf(files: readonly string[]): string[][] {
  const isFirst = (file: string): boolean =>
    file in slow || file in nodeFlags || plan.some((form) => form.isLong && form.files.includes(file));
  const single = longestFirst(files.filter(isFirst)).map((file) => [file]);
  const others = files.filter((file) => !isFirst(file));
  // A pattern leaves few tests, and matches the names of suites, of which a batch has one for each file.
  if (namePatterns.length > 0) return [...single, ...others.map((file) => [file])];
  return [...single, ...batchesOf(others, (file) => readFileSync(join(root, file), "utf8"))];
}

/** Runs the files with one cluster, which is always removed afterwards. */
async function onSharedCluster(files: readonly string[]): Promise<void> {
  if (files.length === 0) return;
  const cluster = (...verb: string[]): string[] => node("tools/dev-cluster/src/main.ts", ...verb);
  await runStep("clean up after an earlier run", cluster("down", "--purge"), e2eEnv);
  try {
    const start = "start a cluster";
    const isUp = count(start, !interrupted.signal.aborted && (await runStep(start, cluster("up"), e2eEnv)) === 0);
    if (isUp)
      await runTests(
        "end to end, shared cluster",
        files.map((file) => [file]),
        { env: e2eEnv },
      );
    else notRun(files, "the end-to-end cluster did not start");
  } finally {
    const remove = "remove the cluster";
    count(remove, (await runStep(remove, cluster("down"), e2eEnv)) === 0);
  }
}

/** Marks the rows of docs/compatibility.tsv with this run's results of the tests that prove them: passed, failed, or not run. */
async function checkProofs(): Promise<void> {
  if (interrupted.signal.aborted) return;
  const file = join(root, ".cox", "outcomes.jsonl");
  mkdirSync(join(root, ".cox"), { recursive: true });
  const notRun = unrunFiles.map((where) => ({ name: "", file: where, where, outcome: "skipped" as const }));
  const outcomes = [...notRun, ...runs.flatMap(({ file, outcomes }) => outcomes.map((each) => ({ file, ...each })))];
  writeFileSync(
    file,
    outcomes.map((each) => `${JSON.stringify({ ...each, where: relative(root, resolve(root, each.where)) })}\n`).join(""),
  );
  await check("proofs of docs/compatibility.tsv", node("tools/check-docs/src/mark-proofs.ts", file));
}

/** Mutates 300 places of the daemons, fewer in a shorter run; the seed depends on the date. */
async function mutationTests(): Promise<void> {
  if (interrupted.signal.aborted) return;
  const results = join(root, ".cox", "mutants.json");
  const begin = performance.now();
  const seed = String(Math.floor(Date.parse(begun) / 86_400_000));
  const name = `mutation, seed ${seed}`;
  const { minutes } = plan.find((form) => form.name === mutation.name) ?? mutation;
  const count = Math.max(1, Math.round((300 * minutes) / mutation.minutes));
  const flags = ["--count", String(count), "--seed", seed, "--lanes", "2", "--timeout", "30", "--json", results];
  rmSync(results, { force: true });
  const isPassed = await check(name, node("tools/mutate/src/main.ts", "packages", ...flags), minutes * 60_000);
  const isFinished = existsSync(results);
  const { tried, caught, timedOut, percent } = (
    isFinished ? JSON.parse(readFileSync(results, "utf8")) : { tried: 0, caught: 0, timedOut: 0, percent: 0 }
  ) as Record<"tried" | "caught" | "timedOut" | "percent", number>; // cast: tools/mutate writes the file
  runs.push({
    ...{
      file: mutation.name,
      passed: isPassed ? 1 : 0,
      skipped: [],
      todo: [],
      durationMs: performance.now() - begin,
      output: "",
    },
    failed: isPassed
      ? []
      : [{ name: isFinished ? "too few faults were caught" : "it did not finish", where: results, error: "" }],
    outcomes: [],
    figures: [
      {
        kind: "figure",
        name: `seed ${seed}`,
        text: `${caught} of ${tried} faults caught (${percent} %), ${timedOut} of them by a timeout`,
      },
    ],
  });
}

/** The forms that have a requested file. */
function selectedOf(forms: readonly PlannedForm[]): PlannedForm[] {
  if (isWhole) return [...forms];
  return forms.filter(({ files }) => files.some((file) => selected.includes(file)));
}

/** Writes the figures of a long run to `.cox/long-run.md`. */
function writeLongReport(): void {
  const machine = { cpus: cpus().length, memoryGb: Math.round(totalmem() / 2 ** 30), commit: commit(), begun, load: loadavg() };
  const page = join(root, ".cox", "long-run.md");
  mkdirSync(join(root, ".cox"), { recursive: true });
  writeFileSync(page, longReport(totals, runs, machine, performance.now(), { hours, plan: selectedOf(plan) }));
  console.log(`figures: ${relative(root, page)}`);
}

function commit(): string {
  try {
    return execFileSync("git", ["rev-parse", "--short", "HEAD"], {
      cwd: root,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    }).trim();
  } catch {
    return "";
  }
}

function notRun(files: readonly string[], reason: string): void {
  unrunFiles.push(...files);
  for (const file of files) totals.skipped.push({ name: file, reason });
}

/** @returns the exit code */
async function runStep(
  name: string,
  [command = "", ...rest]: string[],
  env: Record<string, string> = {},
  limitMs?: number,
): Promise<number> {
  console.log(`== ${name}`);
  const begin = { ms: performance.now(), busyMs: busyMs() };
  const child = spawn(command, rest, {
    cwd: root,
    stdio: ["ignore", "inherit", "inherit"],
    env: { ...process.env, ...env },
    timeout: limitMs,
  });
  const code = await new Promise<number>((done) => {
    child.once("error", (err) => {
      console.log(`${command}: ${err.message}`);
      done(1);
    });
    child.once("exit", (exit) => done(exit ?? 1));
  });
  endStage(name, begin, code === 0 ? "ok" : "FAILED");
  return code;
}

function endStage(name: string, begin: { readonly ms: number; readonly busyMs: number }, outcome = "ended"): void {
  const durationMs = performance.now() - begin.ms;
  totals.stages.push({ name, durationMs, busyMs: busyMs() - begin.busyMs });
  console.log(`== ${name}: ${outcome} after ${(durationMs / 1000).toFixed(1)} s`);
}
