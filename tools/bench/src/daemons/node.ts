import { setTimeout as sleep } from "node:timers/promises";
import { containerdSocket } from "@coxswain/dev-cluster/containerd";
import { newCriClient } from "@coxswain/node-agent/runtime/cri-client";
import { programsOf } from "./daemon.ts";
import { nodeScenarios } from "./node-scenarios.ts";
import { NodeCluster, NodeStage } from "./node-stage.ts";
import { type DaemonBenchOptions, helpOf, isChosen, parseDaemonOptions, type SizeFlags, sizeOf } from "./options.ts";
import { ReportPrinter } from "./printer.ts";
import { type MeasuredRow, type RowReport, reportsOf } from "./report.ts";
import { runScenario } from "./scenario.ts";

const nodeSizes: SizeFlags = {
  pods: { help: "pods that are started and deleted at once, at most 110", normal: [20], quick: [2], most: 110 },
  "idle-seconds": { help: "seconds of the idle row", normal: [30], quick: [3], most: 600 },
  requests: { help: "commands and reads of logs", normal: [50], quick: [3], most: 10_000 },
};

const about = `Pods on a real containerd with one kubelet after the other: start, deletion, idle CPU, restart, commands, logs. As root.`;

/** Time for a kubelet to register its node and to become idle. */
const settleMs = 3_000;

/** `main.ts node [flags]` */
export async function benchNode(argv: readonly string[]): Promise<readonly RowReport[]> {
  const options = parseDaemonOptions(argv, nodeSizes);
  if (options.isHelp) {
    process.stdout.write(helpOf("node", about, nodeSizes));
    return [];
  }
  const stage = NodeStage.start();
  try {
    await stage.stopDaemons("kubelet", "kube-controller-manager", "kube-scheduler");
    return await measure(stage, options);
  } finally {
    stage.remove();
  }
}

/** In each round every kubelet runs all rows in turn; the first round is not counted, as it also warms up the runtime. */
async function measure({ settings }: NodeStage, options: DaemonBenchOptions): Promise<readonly RowReport[]> {
  const size = (flag: string): number => sizeOf(options, flag);
  const scenarios = nodeScenarios({ pods: size("pods"), idleSeconds: size("idle-seconds"), requests: size("requests") });
  const chosen = scenarios.filter(({ name }) => isChosen(options, name));
  const programs = programsOf("kubelet", options);
  const rows: MeasuredRow[] = chosen.map(({ name, limits }) => ({ name, limits, rounds: programs.map(() => []) }));
  const printer = new ReportPrinter(options, () => reportsOf(rows));
  try {
    for (let round = options.warmsUp ? -1 : 0; round < options.rounds; round++) {
      for (const [which, program] of programs.entries()) {
        const cluster = await NodeCluster.open(settings, program);
        try {
          await cluster.startKubelet();
          await sleep(settleMs);
          for (const [row, scenario] of chosen.entries()) {
            const result = await runScenario(scenario, cluster);
            if (round >= 0) rows[row]?.rounds[which]?.push(result);
          }
        } finally {
          await cluster.stop();
        }
        await emptyRuntime(containerdSocket(settings)); // the next kubelet would remove what this one has left
      }
    }
    const alone = await criAlone(containerdSocket(settings), settings.run);
    printer.note(`the runtime alone: a sandbox and one container started in ${alone.toFixed(2)} s (median of 5)`);
  } finally {
    printer.end("kubelet");
  }
  return printer.reports;
}

/** Stops and removes all pods of the runtime. */
async function emptyRuntime(socket: string): Promise<void> {
  const runtime = newCriClient({ endpoint: `unix://${socket}`, requestTimeoutMs: 120_000 });
  try {
    for (const { id } of await runtime.listPodSandboxes()) {
      await runtime.stopPodSandbox(id);
      await runtime.removePodSandbox(id);
    }
  } finally {
    runtime.close();
  }
}

/** Median time of the CRI calls that start a Pod with one container, without a kubelet. */
async function criAlone(socket: string, logs: string): Promise<number> {
  const runtime = newCriClient({ endpoint: `unix://${socket}`, requestTimeoutMs: 120_000 });
  const times: number[] = [];
  try {
    for (let index = 0; index < 5; index++) {
      const name = `alone-${index}`;
      const sandbox = {
        metadata: { name, namespace: "bench", uid: name, attempt: 0 },
        hostname: name,
        logDirectory: logs,
        linux: {},
      };
      const start = performance.now();
      const id = await runtime.runPodSandbox(sandbox, "");
      const container = {
        metadata: { name: "main", attempt: 0 },
        image: { image: "docker.io/library/busybox:1.36" },
        command: ["sleep", "3600"],
        logPath: `${name}.log`,
        linux: {},
      };
      await runtime.startContainer(await runtime.createContainer(id, container, sandbox));
      times.push((performance.now() - start) / 1000);
      await runtime.stopPodSandbox(id);
      await runtime.removePodSandbox(id);
    }
  } finally {
    runtime.close();
  }
  return times.toSorted((a, b) => a - b)[2] ?? Number.NaN;
}
