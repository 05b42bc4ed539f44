import { type DaemonCluster, startDaemonCluster } from "./cluster.ts";
import { type DaemonName, programsOf } from "./daemon.ts";
import { type DaemonBenchOptions, isChosen } from "./options.ts";
import { ReportPrinter } from "./printer.ts";
import { type RowReport, reportOf } from "./report.ts";
import { type RoundResult, runScenario, type Scenario } from "./scenario.ts";

interface DaemonBench {
  readonly daemon: DaemonName;
  /** Flags for all implementations. */
  readonly flags: readonly string[];
  /** Flags that only the second implementation accepts. */
  readonly peerFlags?: readonly string[];
  readonly scenarios: readonly Scenario[];
}

/**
 * Runs the rows on a cluster for each implementation, in alternating rounds, so that other load on the machine affects all
 * alike. The first round is not counted: code not yet optimized is slower, which does not matter for long-running daemons.
 */
export async function runDaemonBench(bench: DaemonBench, options: DaemonBenchOptions): Promise<readonly RowReport[]> {
  const clusters: DaemonCluster[] = [];
  try {
    for (const program of programsOf(bench.daemon, options)) {
      const flags = [...bench.flags, ...(program.name === "peer" ? (bench.peerFlags ?? []) : [])];
      clusters.push(await startDaemonCluster(program, flags));
    }
    const printer = new ReportPrinter(options);
    try {
      for (const scenario of bench.scenarios.filter(({ name }) => isChosen(options, name))) {
        const rounds = await measureScenario(scenario, clusters, options);
        printer.row(reportOf(scenario.name, scenario.limits, rounds));
      }
    } finally {
      printer.end(bench.daemon); // also prints the rows that were completed before a failed one
    }
    return printer.reports;
  } finally {
    for (const cluster of clusters) await cluster.stop();
  }
}

async function measureScenario(
  scenario: Scenario,
  clusters: readonly DaemonCluster[],
  { rounds, warmsUp }: DaemonBenchOptions,
): Promise<RoundResult[][]> {
  const results: RoundResult[][] = clusters.map(() => []);
  for (let round = warmsUp ? -1 : 0; round < rounds; round++) {
    for (const [index, cluster] of clusters.entries()) {
      const result = await runScenario(scenario, cluster).catch((err: unknown) => {
        throw new Error(`${scenario.name}, ${cluster.name}`, { cause: err });
      });
      if (round >= 0) results[index]?.push(result);
    }
  }
  return results;
}
