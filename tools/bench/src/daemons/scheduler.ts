import { helpOf, parseDaemonOptions, type SizeFlags, sizeOf } from "./options.ts";
import type { RowReport } from "./report.ts";
import { runDaemonBench } from "./run.ts";
import { schedulerScenarios } from "./scheduler-scenarios.ts";

const schedulerSizes: SizeFlags = {
  nodes: { help: "nodes, a row for each number", normal: [100, 1000], quick: [20], most: 10_000 },
  pods: { help: "pods of a row", normal: [1000], quick: [50], most: 50_000 },
  preemptors: { help: "pods that each preempt another", normal: [200], quick: [8], most: 5_000 },
  waiting: { help: "unschedulable pods that wait", normal: [2000], quick: [20], most: 50_000 },
};

const about = `Pods that are bound a second, and the scheduler's CPU: etcd, our API server, and nodes that are objects only.`;

/** `main.ts scheduler [flags]` */
export async function benchScheduler(argv: readonly string[]): Promise<readonly RowReport[]> {
  const options = parseDaemonOptions(argv, schedulerSizes);
  if (options.isHelp) {
    process.stdout.write(helpOf("scheduler", about, schedulerSizes));
    return [];
  }
  const scenarios = schedulerScenarios({
    nodes: options.sizes["nodes"] ?? [],
    pods: sizeOf(options, "pods"),
    preemptors: sizeOf(options, "preemptors"),
    waiting: sizeOf(options, "waiting"),
  });
  // No client rate limit, because otherwise the benchmark would measure the limit.
  const flags = ["--leader-elect=false", "--kube-api-qps=10000", "--kube-api-burst=10000"];
  return await runDaemonBench({ daemon: "kube-scheduler", flags, peerFlags: ["--port=0"], scenarios }, options);
}
