import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { median } from "../median.ts";

/** CPU and memory of all processes together, for the start of an API server and the same 50 tests with it. */
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
 * Runs the same suite with a cluster in the test's process, with and without controllers, and with another kube-apiserver and etcd as envtest starts
 * them, in alternating rounds and each in a new process. @returns medians
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
