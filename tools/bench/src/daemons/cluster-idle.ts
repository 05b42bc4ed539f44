import { setTimeout as sleep } from "node:timers/promises";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { nodes, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { daemonNames, daemonProcess } from "@coxswain/dev-cluster/daemons";
import type { Settings } from "@coxswain/dev-cluster/settings";
import { adminClient } from "@coxswain/dev-cluster/up";
import { cpuSeconds, proportionalMb, residentMb, togetherMb } from "../process-usage.ts";
import { makeNamespace } from "./cluster.ts";
import { type DaemonProgram, programsOf, type RunningDaemon, spawnDaemon } from "./daemon.ts";
import { aNodePod, isRunning } from "./node-scenarios.ts";
import { NodeStage } from "./node-stage.ts";
import { type DaemonBenchOptions, helpOf, parseDaemonOptions, type SizeFlags, sizeOf } from "./options.ts";
import { PodView } from "./pod-view.ts";
import { ReportPrinter } from "./printer.ts";
import { repeat } from "./repeat.ts";
import { type MeasuredRow, type RowReport, reportsOf } from "./report.ts";
import type { RoundResult, ScenarioLimits } from "./scenario.ts";

const clusterSizes: SizeFlags = {
  pods: { help: "pods that run", normal: [20], quick: [1], most: 110 },
  "idle-seconds": { help: "seconds of a round", normal: [60], quick: [3], most: 3_600 },
};

const about = `CPU time and memory of all daemons of a cluster of one node that does nothing, without etcd and containerd. As root.
Of all together, memory pages that several of them share count once.`;

/** Daemons that both implementations have, in start order. */
const compared = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet"] as const;
type Compared = (typeof compared)[number];

/** Time for the daemons to become idle after the last Pod is running. */
const settleMs = 20_000;

/** `main.ts cluster [flags]` */
export async function benchCluster(argv: readonly string[]): Promise<readonly RowReport[]> {
  const options = parseDaemonOptions(argv, clusterSizes);
  if (options.isHelp) {
    process.stdout.write(helpOf("cluster", about, clusterSizes));
    return [];
  }
  const stage = NodeStage.start();
  try {
    await stage.stopDaemons(...[...daemonNames].reverse());
    return await measure(stage.settings, options);
  } finally {
    stage.remove();
  }
}

async function measure(settings: Settings, options: DaemonBenchOptions): Promise<readonly RowReport[]> {
  const implementations = programsOf("kubelet", options).map(({ name }) => name);
  const results = implementations.map((): IdleRound[] => []);
  const row = (name: string, limits: ScenarioLimits, resultOf: (round: IdleRound) => RoundResult): MeasuredRow => ({
    name,
    limits,
    rounds: results.map((rounds) => rounds.map(resultOf)),
  });
  const printer = new ReportPrinter(options, () =>
    reportsOf([
      ...compared.map((name) => row(name, {}, ({ daemons }) => daemons.get(name)!)),
      row("all of them", { cpu: 0.35, memory: 0.5 }, (round) => allOf(round)),
    ]),
  );
  try {
    for (let round = 0; round < options.rounds; round++) {
      for (const [index, name] of implementations.entries()) results[index]?.push(await measureRound(settings, name, options));
    }
  } finally {
    printer.end("idle cluster");
  }
  return printer.reports;
}

interface IdleRound {
  readonly daemons: ReadonlyMap<Compared, RoundResult>;
  /** Pages shared by several daemons count once. */
  readonly togetherMb: number;
}

function allOf({ daemons, togetherMb }: IdleRound): RoundResult {
  const results = [...daemons.values()];
  const sum = (figure: keyof RoundResult): number => results.reduce((all, result) => all + result[figure], 0);
  const [first] = results;
  return {
    operations: first?.operations ?? 0,
    seconds: first?.seconds ?? 0,
    cpuSeconds: sum("cpuSeconds"),
    serverCpuSeconds: sum("serverCpuSeconds"),
    apiCalls: sum("apiCalls"),
    residentMb: togetherMb,
    proportionalMb: sum("proportionalMb"),
  };
}

/** Each implementation has its own objects in the same etcd. */
async function measureRound(settings: Settings, name: DaemonProgram["name"], options: DaemonBenchOptions): Promise<IdleRound> {
  const running = new Map<Compared, RunningDaemon>();
  try {
    for (const daemon of compared) running.set(daemon, await start(settings, name, daemon, options));
    await runPods(settings, sizeOf(options, "pods"));
    await sleep(options.isQuick ? 1_000 : settleMs);
    const before = new Map([...running].map(([daemon, { pid }]) => [daemon, cpuSeconds(pid)]));
    const seconds = sizeOf(options, "idle-seconds");
    await sleep(seconds * 1000);
    const resultOf = (daemon: Compared, pid: number): RoundResult => ({
      operations: sizeOf(options, "pods"),
      seconds,
      cpuSeconds: cpuSeconds(pid) - (before.get(daemon) ?? 0),
      serverCpuSeconds: 0,
      apiCalls: 0,
      residentMb: residentMb(pid),
      proportionalMb: proportionalMb(pid),
    });
    return {
      daemons: new Map([...running].map(([daemon, { pid }]) => [daemon, resultOf(daemon, pid)])),
      togetherMb: togetherMb([...running.values()].map(({ pid }) => pid)),
    };
  } finally {
    for (const daemon of [...running.values()].toReversed()) await daemon.stop();
  }
}

/** Waits until the API server is ready and the other daemons are healthy. */
function start(
  settings: Settings,
  name: DaemonProgram["name"],
  daemon: Compared,
  options: DaemonBenchOptions,
): Promise<RunningDaemon> {
  const { ports } = settings;
  const addresses: Readonly<Record<Compared, string>> = {
    "kube-apiserver": `https://127.0.0.1:${ports.apiserver}`,
    "kube-controller-manager": `https://127.0.0.1:${ports.controllerManager}`,
    "kube-scheduler": `https://127.0.0.1:${ports.scheduler}`,
    kubelet: `http://127.0.0.1:${ports.kubeletHealthz}`,
  };
  const program = programsOf(daemon, options).find((one) => one.name === name)!;
  const { args: all, env } = daemonProcess(settings, daemon);
  const [, ...args] = all; // the first argument is our program
  const isServer = daemon === "kube-apiserver";
  const flags = isServer ? [...args.filter((flag) => flag !== "--ui"), `--etcd-prefix=/registry-${name}`] : args;
  return spawnDaemon(program, flags, addresses[daemon], isServer ? "/readyz" : "/healthz", env);
}

/** Creates the Pods unless an earlier round has created them, and waits until they run. */
async function runPods(settings: Settings, count: number): Promise<void> {
  const client = await adminClient(settings);
  const namespace = "bench";
  const view = new PodView(client);
  try {
    await makeNamespace(client, namespace);
    const isReadyNode = ({ status }: Node): boolean =>
      status?.conditions?.some((condition) => condition.type === "Ready" && condition.status === "True") === true;
    await waitFor(async () => isReadyNode(await client.get<Node>(nodes, { name: settings.nodeName })), {
      what: "the node to be ready",
      timeoutMs: 120_000,
      retry: () => true,
    });
    await client.deleteCollection(pods, { namespace }, { gracePeriodSeconds: 0 });
    await view.start();
    await repeat(count, (index) => client.create(pods, aNodePod(settings, `pod-${index}`), { namespace }));
    await view.until("all pods to run", count, (pod) => pod.metadata.namespace === namespace && isRunning(pod));
  } finally {
    await view.stop();
    client.close();
  }
}
