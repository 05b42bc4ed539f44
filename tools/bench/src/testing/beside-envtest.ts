import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { median } from "../median.ts";

/** One way to have an API server in a test: what its start and the same 50 tests cost in all processes together. */
export interface SuiteReport {
  readonly name: string;
  readonly startMs: number;
  readonly startCpuMs: number;
  readonly suiteMs: number;
  readonly suiteCpuMs: number;
  readonly residentMb: number;
}

const run = promisify(execFile);

/**
 * The same suite over a cluster in its own process, with controllers and without, and over another kube-apiserver with etcd as envtest starts
 * them; in alternating rounds, each in a new process. @returns medians
 */
export async function besideEnvtest(packageFolder: string, peerBin: string, rounds: number): Promise<SuiteReport[]> {
  const contenders = [
    ["in process, whole cluster", "cluster", packageFolder],
    ["in process, API server alone", "server", packageFolder],
    ["envtest with the peer", "envtest", peerBin],
  ] as const;
  const reports = new Map<string, SuiteReport[]>(contenders.map(([name]) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    for (const [name, kind, folder] of contenders) {
      const { stdout } = await run(process.execPath, ["-C", "cox-source", join(import.meta.dirname, "suite.ts"), kind, folder]);
      reports.get(name)?.push({ name, ...JSON.parse(stdout) });
    }
  }
  return [...reports.values()].map((all) => {
    const of = (figure: Exclude<keyof SuiteReport, "name">): number => median(all.map((one) => one[figure]));
    return {
      name: all[0]?.name ?? "",
      startMs: of("startMs"),
      startCpuMs: of("startCpuMs"),
      suiteMs: of("suiteMs"),
      suiteCpuMs: of("suiteCpuMs"),
      residentMb: of("residentMb"),
    };
  });
}
