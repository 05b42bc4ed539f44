import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

export interface Cost {
  readonly wallMs: number;
  readonly cpuMs: number;
}

export interface Memory {
  /** Of the process, in megabytes. */
  readonly rssMb: number;
}

export interface Cycles {
  readonly cycles: number;
  readonly cpuMsEach: number;
  /** Used after garbage collection, before the cycles that are counted and after them. */
  readonly heapMbBefore: number;
  readonly heapMbAfter: number;
  /** Of the process, at the same moments. */
  readonly rssMbBefore: number;
  readonly rssMbAfter: number;
  readonly handlesLeft: number;
}

export interface Measurements {
  /** The first cluster of a process: controllers, scheduler, 3 fake nodes. */
  readonly first: Cost;
  readonly fork: Cost;
  /** A Deployment of 10 until all are ready. */
  readonly deployment: Cost;
  /** Clusters at once. */
  readonly together: Memory;
  readonly cycles: Cycles;
}

const run = promisify(execFile);

/**
 * Measures the package as it is published, in a separate process, in the order of `counts`; `first` is the first cluster only when it comes first.
 * @param folder of the package @param counts rounds, clusters at once or cycles @param nodeFlags for example `--cpu-prof`
 */
export async function measure<Name extends keyof Measurements>(
  folder: string,
  counts: Readonly<Record<Name, number>>,
  nodeFlags: readonly string[] = [],
): Promise<Pick<Measurements, Name>> {
  const program = join(import.meta.dirname, "work.ts");
  const wanted = Object.entries(counts).map(([name, count]) => `${name}=${count}`);
  const args = ["--expose-gc", ...nodeFlags, program, join(folder, "dist/index.js"), ...wanted];
  const { stdout } = await run(process.execPath, args);
  return JSON.parse(stdout) as Pick<Measurements, Name>;
}

/** Growth of the heap that cycles of start and stop may leave: compiled code. One cluster that is kept is some 5 MB. */
export const mostHeapGrowthMb = 5;

/** Growth of the process in 1,000 cycles after 50: V8 lets its heap grow. 18 MB were seen. */
export const mostRssGrowthMb = 100;

/** What must hold on an idle machine of two cores. */
export const limits = { firstMs: 1_000, forkMs: 50, deploymentMs: 150, togetherMb: 600, together: 20 } as const;
