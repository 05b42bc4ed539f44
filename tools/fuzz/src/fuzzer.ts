import { readCorpus } from "./corpus.ts";
import type { Coverage } from "./coverage.ts";
import { type Fault, judge } from "./judge.ts";
import { minimised } from "./minimise.ts";
import { type Material, mutated } from "./mutate.ts";
import { type Below, belowOf } from "./random.ts";
import type { Target } from "./target.ts";

export interface Find {
  readonly target: string;
  readonly input: Buffer;
  readonly fault: Fault;
}

export interface Limits {
  readonly seed: number;
  /** Maximum number of generated inputs. */
  readonly most: number;
  /** CPU time of this thread. */
  readonly cpuSeconds: number;
}

interface Progress {
  /** Called before each input, for a watchdog. */
  begins(input: Buffer): void;
  finds(find: Find): void;
}

export interface Outcome {
  readonly inputs: number;
  /** Inputs that executed code which earlier inputs did not. */
  readonly corpus: readonly Buffer[];
  /** Covered characters of source; 0 without coverage. */
  readonly characters: number;
}

/** Number of inputs per coverage request, because a request takes V8 as long as hundreds of inputs. */
const batchSizes = { least: 64, most: 4096 };

/** Runs a target with its seeds and corpus, then with mutations of them; with coverage, inputs that execute new code are mutated further. */
export async function fuzz(
  name: string,
  target: Target,
  limits: Limits,
  progress: Progress,
  coverage?: Coverage,
): Promise<Outcome> {
  const below = belowOf(limits.seed);
  const run = new Run(name, target, progress);
  const kept = [...target.seeds.map((seed) => Buffer.from(seed as string)), ...readCorpus(name)]; // cast: Buffer.from takes both types by different overloads
  for (const input of kept) await run.tries(input);
  coverage?.isNew(true);
  const words = (target.dictionary ?? []).map((word) => Buffer.from(word as string)); // cast: Buffer.from takes both types by different overloads
  const material: Material = { others: kept, words, maxBytes: target.maxBytes ?? 1024 };
  const start = process.threadCpuUsage();
  const isTimeLeft = (): boolean => {
    const { user, system } = process.threadCpuUsage(start);
    return (user + system) / 1e6 < limits.cpuSeconds;
  };
  let inputs = 0;
  for (let size = batchSizes.least; inputs < limits.most && isTimeLeft(); ) {
    const batch = Array.from({ length: Math.min(size, limits.most - inputs) }, () =>
      mutated(chosen(kept, below), material, below),
    );
    for (const input of batch) {
      await run.tries(input);
      inputs++;
      if (!isTimeLeft()) break; // inputs may be slow
    }
    const isNew = coverage?.isNew(false) ?? false;
    if (coverage !== undefined && isNew) kept.push(...(await whatIsNew(batch, run, coverage)));
    size = isNew ? batchSizes.least : Math.min(size * 2, batchSizes.most);
  }
  const corpus = coverage === undefined ? [] : await smallest(kept, run, coverage);
  return { inputs, corpus, characters: coverage?.characters ?? 0 };
}

/** Prefers newer inputs, of which fewer mutations were tried. */
function chosen(kept: readonly Buffer[], below: Below): Buffer {
  const from = below(2) === 0 ? Math.floor((kept.length * 3) / 4) : 0;
  return kept[from + below(kept.length - from)]!;
}

class Run {
  readonly name: string;
  readonly target: Target;
  readonly progress: Progress;
  readonly #seen = new Set<string>();

  constructor(name: string, target: Target, progress: Progress) {
    this.name = name;
    this.target = target;
    this.progress = progress;
  }

  async tries(input: Buffer): Promise<void> {
    const fault = await this.look(input);
    if (fault === undefined || this.#seen.has(fault.signature)) return;
    this.#seen.add(fault.signature);
    const small = await minimised(
      input,
      async (candidate) => (await this.look(candidate))?.signature === fault.signature,
      fault.signature === "slow" ? 60 : 2000,
    );
    this.progress.finds({ target: this.name, input: small, fault: (await this.look(small)) ?? fault });
  }

  look(input: Buffer): Promise<Fault | undefined> {
    this.progress.begins(input);
    return judge(this.target, input);
  }
}

/** Bisects a batch for the inputs that execute code which no earlier input did. */
async function whatIsNew(batch: readonly Buffer[], run: Run, coverage: Coverage): Promise<Buffer[]> {
  for (const input of batch) await run.look(input);
  if (!coverage.isNew(batch.length === 1)) return []; // also when the first run's new code depended on state that it has left, such as a filled cache
  if (batch.length === 1) return [...batch];
  const half = Math.ceil(batch.length / 2);
  const first = await whatIsNew(batch.slice(0, half), run, coverage);
  return [...first, ...(await whatIsNew(batch.slice(half), run, coverage))];
}

/** Greedy minimum set, smallest inputs first, with the same coverage as all of them. */
async function smallest(inputs: readonly Buffer[], run: Run, coverage: Coverage): Promise<Buffer[]> {
  const { characters } = coverage;
  coverage.reset(true);
  const needed: Buffer[] = [];
  for (const input of inputs.toSorted((a, b) => a.length - b.length)) {
    await run.look(input);
    if (coverage.isNew(true)) needed.push(input);
    if (coverage.characters >= characters) break;
  }
  return needed;
}
