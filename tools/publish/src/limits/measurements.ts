import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

export interface Cost {
  readonly wallMs: number;
  readonly cpuMs: number;
}

export interface Memory {
  /** Resident set size of the process, in MB. */
  readonly rssMb: number;
}

export interface Cycles {
  readonly cycles: number;
  readonly cpuMsEach: number;
  /** Heap in use after garbage collection, before and after the measured cycles. */
  readonly heapMbBefore: number;
  readonly heapMbAfter: number;
  /** Resident set size of the process, at the same times. */
  readonly rssMbBefore: number;
  readonly rssMbAfter: number;
  readonly handlesLeft: number;
}

export interface Measurements {
  /** Cost of the first cluster in a process: controllers, scheduler, 3 fake nodes. */
  readonly first: Cost;
  readonly fork: Cost;
  /** Cost of a Deployment with 10 replicas until all are ready. */
  readonly deployment: Cost;
  /** Memory of several concurrent clusters. */
  readonly together: Memory;
  readonly cycles: Cycles;
}

const run = promisify(execFile);

/**
 * Measures the package as published, in a separate process, in the order of `counts`; `first` must come first to measure the first cluster.
 * @param folder folder of the package @param counts number of rounds, clusters or cycles @param nodeFlags for example `--cpu-prof`
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
  return JSON.parse(stdout) as Pick<Measurements, Name>; // cast: work.ts prints it
}

/** Allowed growth of the heap by cycles of start and stop, for compiled code. A leaked cluster takes some 5 MB. */
export const mostHeapGrowthMb = 5;

/** Allowed growth of the process in 1,000 cycles after the first 50, because V8 lets its heap grow. 18 MB were observed. */
export const mostRssGrowthMb = 100;

/** Limits on an idle machine with two cores. */
export const limits = { firstMs: 1_000, forkMs: 50, deploymentMs: 150, togetherMb: 600, together: 20 } as const;
