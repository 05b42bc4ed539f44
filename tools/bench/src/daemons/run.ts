import { writeFileSync } from "node:fs";
import { loadavg } from "node:os";
import { type DaemonCluster, startDaemonCluster } from "./cluster.ts";
import { type DaemonName, programsOf } from "./daemon.ts";
import { type DaemonBenchOptions, machineLine } from "./options.ts";
import { medianOf, type RowReport, reportHeader, reportLines } from "./report.ts";
import { type RoundResult, runScenario, type Scenario } from "./scenario.ts";
import { svgOf } from "./svg.ts";

export interface DaemonBench {
  readonly daemon: DaemonName;
  /** Flags of all implementations. */
  readonly flags: readonly string[];
  /** Flags that only the second implementation knows. */
  readonly peerFlags?: readonly string[];
  readonly scenarios: readonly Scenario[];
}

/**
 * Runs the rows on a cluster for each implementation, in alternating rounds, so that other load on the machine affects all
 * alike. One round before is not counted: code not yet optimized is slower, which does not matter for long-running daemons.
 */
export async function runDaemonBench(bench: DaemonBench, options: DaemonBenchOptions): Promise<RowReport[]> {
  const print = options.isJson ? () => {} : console.log;
  print(machineLine(loadavg()[0] ?? 0));
  const clusters: DaemonCluster[] = [];
  const reports: RowReport[] = [];
  const rounds: Record<string, unknown> = {};
  try {
    for (const program of programsOf(bench.daemon, options)) {
      const flags = [...bench.flags, ...(program.name === "peer" ? (bench.peerFlags ?? []) : [])];
      clusters.push(await startDaemonCluster(program, flags));
    }
    print(reportHeader());
    for (const scenario of bench.scenarios.filter(({ name }) => name.includes(options.only))) {
      const results = await measureScenario(scenario, clusters, options);
      const [ours = [], peer] = results;
      const report = {
        name: scenario.name,
        limits: scenario.limits,
        ours: medianOf(ours),
        ...(peer && { peer: medianOf(peer) }),
      };
      reports.push(report);
      rounds[scenario.name] = { ours, peer };
      for (const line of reportLines(report)) print(line);
    }
  } finally {
    for (const cluster of clusters) await cluster.stop();
  }
  if (options.isJson) console.log(JSON.stringify({ machine: machineLine(loadavg()[0] ?? 0), reports, rounds }, undefined, 2));
  if (options.svgFile !== undefined) writeFileSync(options.svgFile, svgOf(bench.daemon, reports));
  return reports;
}

async function measureScenario(
  scenario: Scenario,
  clusters: readonly DaemonCluster[],
  { rounds, isQuick }: DaemonBenchOptions,
): Promise<RoundResult[][]> {
  const results: RoundResult[][] = clusters.map(() => []);
  for (let round = isQuick ? 0 : -1; round < rounds; round++) {
    for (const [index, cluster] of clusters.entries()) {
      const result = await runScenario(scenario, cluster).catch((err: unknown) => {
        throw new Error(`${scenario.name}, ${cluster.name}`, { cause: err });
      });
      if (round >= 0) results[index]?.push(result);
    }
  }
  return results;
}
