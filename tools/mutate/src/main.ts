/**
 * `node tools/mutate/src/main.ts <folder>...`: finds mutations of the code below a folder that its tests do not detect; see
 * `--help`.
 */
import { globSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Compiler } from "./compiler.ts";
import { executedBy, executingFirst, readCoverage } from "./coverage.ts";
import { diffOf } from "./diff.ts";
import { draw } from "./draw.ts";
import { outdated, readEquivalents } from "./equivalents.ts";
import { handWritten } from "./hand-written.ts";
import { kinds, type Mutant, mutantsOf, mutatedText } from "./mutants.ts";
import { type Options, optionsOf, UsageError, usage } from "./options.ts";
import { jsonOfReport, lineOf, type Outcome, summaryOf, textOfReport } from "./report.ts";
import { Session, type SessionOptions } from "./session.ts";
import { dependentsOf, importGraph, testsOf } from "./tests-of.ts";

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..");
const equivalentsPath = join(root, "tools/mutate/equivalent.json");

/** Texts of all sources, by path relative to the root. */
type Texts = ReadonlyMap<string, string>;

async function run(options: Options): Promise<number> {
  const sources = globSync(["packages/*/src/**/*.ts", "tools/*/src/**/*.ts"], {
    cwd: root,
    exclude: (name) => name === "node_modules",
  });
  const files = sources.filter((file) => isMutable(file) && options.folders.some((folder) => isBelow(file, folder))).sort();
  const empty = options.folders.find((folder) => !files.some((file) => isBelow(file, folder)));
  if (empty !== undefined) throw new UsageError(`there is no source file at ${empty}; give a path from the repository's root`);
  // A snapshot, because files may be edited during the run.
  const texts: Texts = new Map(sources.map((file) => [file, readFileSync(join(root, file), "utf8")]));
  const compiler = new Compiler(root, join(root, "tsconfig.check.json"));
  try {
    const drawn =
      options.faults === undefined ? chosen(options, files, texts, compiler) : written(options, options.faults, texts, compiler);
    if (options.list) return list(drawn, texts);
    const graph = importGraph(texts);
    const folders = options.folders.filter((folder) => statSync(join(root, folder)).isDirectory());
    const executed = options.coverage === undefined ? undefined : readCoverage(options.coverage);
    const ordered = ({ file, edit }: Mutant): string[] => {
      const tests = testsOf(file, graph, folders);
      if (executed === undefined) return tests;
      // Its own test may be newer than the coverage.
      const own = file.replace(/\.ts$/, ".test.ts");
      return executingFirst(tests, new Set([own, ...executedBy(executed, file, edit.start)]));
    };
    return await tryAll(options, drawn, texts, {
      testsOf: (mutant) => ordered(mutant).slice(0, options.mostTests),
      dependentsOf: (file) => dependentsOf(file, graph),
    });
  } finally {
    compiler.close();
  }
}

const isBelow = (file: string, folder: string): boolean => file === folder || file.startsWith(`${folder}/`);

/** Hand-written code except tests, test helpers, and the page, whose tests run in a browser and which the compiler's project leaves out. */
const isMutable = (file: string): boolean =>
  !/^packages\/ui\/|\.test\.ts$|\.generated\.ts$|\/schema\/kinds\/|\/testing\/|\/testing\.ts$|\/suite\.ts$/.test(file);

/** Mutants that compile and are not known to be equivalent, in drawing order. */
function* chosen(options: Options, files: readonly string[], texts: Texts, compiler: Compiler): Generator<Mutant> {
  const wanted = kinds.filter(({ name }) => options.kinds.length === 0 || options.kinds.includes(name));
  const mutants = files.flatMap((file) => mutantsOf(file, compiler.sourceFile(join(root, file)), wanted));
  const known = readEquivalents(equivalentsPath);
  if (options.kinds.length === 0) {
    for (const { id, file } of outdated(known, new Set(mutants.map((mutant) => mutant.id)), new Set(files)))
      console.error(`mutate: equivalent.json: ${id} is no fault of ${file} any more; remove the entry`);
  }
  const missing = options.only.find((only) => mutants.every(({ id }) => id !== only));
  if (missing !== undefined) throw new UsageError(`there is no fault ${missing} below these folders: the code may have changed`);
  let left = options.only.length || options.count;
  for (const mutant of draw(mutants, options.seed)) {
    if (left === 0) return;
    if (options.only.length > 0 ? !options.only.includes(mutant.id) : known.has(mutant.id)) continue;
    if (compiler.faultsOf(join(root, mutant.file), mutatedText(textOf(mutant, texts), mutant)).length > 0) {
      if (options.only.length === 0) continue;
      throw new UsageError(`the fault ${mutant.id} does not compile`);
    }
    left--;
    yield mutant;
  }
}

/** The hand-written faults of a file, in its order. @throws UsageError for an entry that is not a fault, or does not compile */
function written(options: Options, path: string, texts: Texts, compiler: Compiler): readonly Mutant[] {
  const mutants = readFaults(path, texts);
  const missing = options.only.find((only) => mutants.every(({ id }) => id !== only));
  if (missing !== undefined) throw new UsageError(`there is no fault ${missing} in ${path}`);
  const wanted = mutants.filter(({ id }) => options.only.length === 0 || options.only.includes(id));
  // All before the first is tried, which may take hours.
  const wrong = wanted.filter(
    (mutant) => compiler.faultsOf(join(root, mutant.file), mutatedText(textOf(mutant, texts), mutant)).length > 0,
  );
  if (wrong.length > 0) throw new UsageError(wrong.map(({ id, why }) => `the fault ${id} (${why}) does not compile`).join("\n"));
  return wanted;
}

function readFaults(path: string, texts: Texts): Mutant[] {
  try {
    return handWritten(readFileSync(path, "utf8"), (file) => texts.get(file));
  } catch (err) {
    throw new UsageError(`${path}: ${(err as Error).message}`); // cast: Errors only
  }
}

const textOf = (mutant: Mutant, texts: Texts): string => texts.get(mutant.file)!;

function list(drawn: Iterable<Mutant>, texts: Texts): number {
  for (const mutant of drawn) {
    const before = textOf(mutant, texts);
    console.log(`\n${mutant.id} ${mutant.kind} ${mutant.file}:${mutant.line}\n${diffOf(before, mutatedText(before, mutant))}`);
  }
  return 0;
}

async function tryAll(
  options: Options,
  drawn: Iterable<Mutant>,
  texts: Texts,
  graph: Pick<SessionOptions, "testsOf" | "dependentsOf">,
): Promise<number> {
  const session = new Session({
    root,
    timeoutMs: options.timeoutSeconds * 1000,
    ...graph,
    warn: (text) => console.error(`mutate: ${text}`),
  });
  const outcomes: Outcome[] = [];
  const end = (): void => {
    session.close();
    if (options.json !== undefined) writeFileSync(options.json, jsonOfReport(options.seed, options.folders, outcomes));
  };
  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const) {
    process.once(signal, () => {
      console.log(textOfReport(outcomes));
      end(); // a worker in an endless loop of a mutant would run on
      process.exit(code);
    });
  }
  const left = Iterator.from(drawn);
  const work = async (): Promise<void> => {
    for (let next = left.next(); !next.done; next = left.next()) {
      const mutant = next.value;
      const outcome = await session.try(mutant, textOf(mutant, texts));
      outcomes.push(outcome);
      console.log(`${String(outcomes.length).padStart(3)}  ${lineOf(outcome)}`);
    }
  };
  try {
    await Promise.all(Array.from({ length: options.lanes }, work));
  } finally {
    end();
  }
  console.log(textOfReport(outcomes));
  return summaryOf(outcomes).percent >= options.minCaught ? 0 : 1;
}

try {
  const options = optionsOf(process.argv.slice(2));
  if (options === undefined) console.log(usage);
  else process.exitCode = await run(options);
} catch (err) {
  if (!(err instanceof UsageError)) throw err;
  console.error(`mutate: ${err.message}\nmutate: see node tools/mutate/src/main.ts --help`);
  process.exitCode = 2;
}
