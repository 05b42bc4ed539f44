/**
 * The five processes of a cluster are started in any order, together or far apart, with fresh state, on machines that are idle,
 * busy, or have a slow disk: each becomes ready without a restart, a Deployment runs, and no request of a daemon is denied.
 * `COX_TEST_LONG`: 200 starts; otherwise as many as fit into 40 s.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "@coxswain/apimachinery/client/client";
import type { Deployment } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import { deployments } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { containerdProcess, containerdSocket, importImages, writeContainerdConfig } from "@coxswain/dev-cluster/containerd";
import { daemonProcess, etcdProcess } from "@coxswain/dev-cluster/daemons";
import { setUpNetwork } from "@coxswain/dev-cluster/network";
import { removeAllPods } from "@coxswain/dev-cluster/pods";
import type { ProcessSpec } from "@coxswain/dev-cluster/processes";
import { type Settings, withExtraArgs } from "@coxswain/dev-cluster/settings";
import { daemonOf, isRefused, readAuditLog, summaryOf } from "../framework/audit.ts";
import { type ManualCluster, newManualCluster, type OwnProcess } from "../framework/own-cluster.ts";
import { type WaitOptions, waitFor } from "../framework/wait-for.ts";
import { mountSlowDisk, type SlowDisk } from "./slow-disk.ts";

const isLong = Boolean(process.env["COX_TEST_LONG"]);
const starts = isLong ? 200 : Number.POSITIVE_INFINITY;
const budgetMs = isLong ? Number.POSITIVE_INFINITY : 40_000;

const names = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet"] as const;
type Name = (typeof names)[number];

interface Start {
  readonly order: readonly Name[];
  /** Delay before each process except the first. */
  readonly gapsMs: readonly number[];
  readonly machine: "idle" | "fsync" | "busy" | "slow disk";
}

/** Chosen around upstream's timeouts: 10 s for a healthy server, 30 s for the roles. */
const gaps: readonly (readonly number[])[] = [
  [0, 0, 0, 0],
  [300, 300, 300, 300],
  [0, 1_500, 0, 1_500],
  [0, 0, 0, 0],
  [0, 0, 0, 4_000],
  [1_000, 1_000, 1_000, 1_000],
  [12_000, 0, 0, 0],
  [0, 0, 0, 13_000],
];
/** Occasionally in the long run: longer than every timeout. */
const long = [
  [35_000, 0, 0, 0],
  [0, 35_000, 0, 0],
  [0, 0, 35_000, 0],
  [0, 0, 0, 35_000],
];
const machines: readonly Start["machine"][] = ["idle", "fsync", "busy", "slow disk"];

/** Cycles through all 120 orders in a fixed sequence, combined with cycling delays and machine conditions. */
function startOf(i: number): Start {
  const orders = permutations(names);
  const order = orders[(i * 37 + 119) % orders.length] as readonly Name[];
  const gapsMs = isLong && i % 20 === 19 ? long[Math.floor(i / 20) % long.length] : gaps[(i * 3) % (isLong ? gaps.length : 6)];
  return { order, gapsMs: gapsMs as readonly number[], machine: machines[i % machines.length] as Start["machine"] };
}

function permutations<T>(items: readonly T[]): T[][] {
  if (items.length === 0) return [[]];
  return items.flatMap((item) => permutations(items.filter((other) => other !== item)).map((rest) => [item, ...rest]));
}

test("the processes of a cluster come up in whatever order and however far apart they are started", async (t) => {
  const cluster = await newManualCluster(t, { withNode: true });
  const { settings } = cluster;
  await setUpNetwork(settings);
  writeContainerdConfig(settings);
  const first = cluster.start(containerdProcess(settings));
  await waitFor("containerd", () => removeAllPods(containerdSocket(settings)).then(() => true), whileStarting);
  await importImages(settings);
  await first.stop("SIGTERM");
  const slow = await mountSlowDisk(t, join(settings.state, "slow-disk.img"));
  if (slow === undefined) t.diagnostic("no slow disk can be made here: etcd is paused again and again instead");

  const begunMs = performance.now();
  const tookMs: number[] = [];
  const failures: string[] = [];
  for (let i = 0; i < starts && performance.now() - begunMs < budgetMs; i++) {
    const start = startOf(i);
    const atMs = performance.now();
    await startOnce(cluster, i, start, slow).catch((err: Error) => {
      failures.push(`start ${i} (${JSON.stringify(start)}): ${err.message} ${(err.cause as Error | undefined)?.message ?? ""}`);
      process.stdout.write(`${failures.at(-1)}\n`);
    });
    tookMs.push(performance.now() - atMs - start.gapsMs.reduce((sum, gapMs) => sum + gapMs, 0));
    if (isLong)
      process.stdout.write(`${i + 1} starts, ${failures.length} failed; the last took ${tookMs.at(-1)?.toFixed(0)} ms\n`);
  }
  const sorted = tookMs.toSorted((a, b) => a - b).map((ms) => (ms / 1000).toFixed(1));
  const at = (share: number): string => sorted[Math.floor(share * (sorted.length - 1))] as string;
  t.diagnostic(`${tookMs.length} starts, ${failures.length} failed; ${at(0.5)} s in the middle, ${at(1)} s at most, gaps aside`);
  assert.deepEqual(failures, []);
  assert.ok(tookMs.length > 0);
});

/** Fresh state, all processes, a Deployment; then everything is killed. */
async function startOnce(cluster: ManualCluster, i: number, start: Start, slow: SlowDisk | undefined): Promise<void> {
  const { settings } = cluster;
  const ending = new AbortController();
  const running = new Map<string, OwnProcess>();
  const specs = new Map<string, ProcessSpec>();
  const client = await cluster.client();
  const audit = join(settings.state, "logs", `audit-${i}.log`);
  try {
    if (start.machine === "busy") for (let core = 0; core < 2; core++) keepBusy(ending.signal);
    for (const [position, name] of start.order.entries()) {
      if (position > 0) await delay(start.gapsMs[position - 1]);
      if (name === "kubelet") running.set("containerd", cluster.start(containerdProcess(settings)));
      const spec = specOf(settings, name, i, start.machine, audit, slow);
      const process = cluster.start(spec);
      running.set(name, process);
      specs.set(name, spec);
      if (name !== "etcd" || start.machine !== "slow disk") continue;
      if (slow === undefined) void pulse(process, ending.signal);
      else slow.slowDown(process.pid);
    }
    /** On an overloaded machine a lease may be lost, and its holder exits: a supervisor would restart it. */
    const restartLeaders = (): void => {
      for (const [name, process] of running) {
        const spec = specs.get(name);
        if (process.end() === undefined || spec === undefined || !/eaderelection lost/.test(process.log())) continue;
        globalThis.process.stdout.write(`${name} has lost its lease and is started again\n`);
        running.set(name, cluster.start(spec));
      }
    };
    await runDeployment(client, running, restartLeaders);
    const refused = readAuditLog(audit).filter((event) => daemonOf(event) !== undefined && isRefused(event));
    assert.deepEqual([...new Set(refused.map(summaryOf))], [], "a daemon was refused");
  } finally {
    ending.abort();
    client.close();
    running.get("etcd")?.signal("SIGCONT");
    const { containerd, ...daemons } = Object.fromEntries(running);
    await Promise.all(Object.values(daemons).map((process) => process.stop()));
    if (containerd !== undefined) {
      await waitFor("the pods to be removed", () => removeAllPods(containerdSocket(settings)).then(() => true), whileStarting);
      await containerd.stop("SIGTERM");
    }
    // Each takes at least 64 MB; the slow disk holds only a few.
    for (const folder of [settings.state, slow?.folder ?? settings.state])
      rmSync(join(folder, `etcd-${i}`), { recursive: true, force: true });
  }
}

/** With its own folders, without state of an earlier start. */
function specOf(
  settings: Settings,
  name: Name,
  i: number,
  machine: Start["machine"],
  audit: string,
  slow: SlowDisk | undefined,
): ProcessSpec {
  const syncs = machine === "fsync" || machine === "slow disk";
  const folder = machine === "slow disk" && slow !== undefined ? slow.folder : settings.state;
  switch (name) {
    case "etcd": {
      const spec = etcdProcess({ ...settings, etcdWithoutSync: !syncs });
      return { ...spec, args: withExtraArgs(spec.args, [`--data-dir=${join(folder, `etcd-${i}`)}`]) };
    }
    case "kubelet": {
      const spec = daemonProcess(settings, name);
      return { ...spec, args: withExtraArgs(spec.args, [`--root-dir=${join(settings.state, `kubelet-${i}`)}`]) };
    }
    case "kube-apiserver": {
      const policy = join(settings.root, "e2e/framework/audit-policy.yaml");
      const spec = daemonProcess(settings, name);
      return { ...spec, args: withExtraArgs(spec.args, [`--audit-policy-file=${policy}`, `--audit-log-path=${audit}`]) };
    }
    default:
      return daemonProcess(settings, name);
  }
}

/** The server may not be available yet. */
const whileStarting: WaitOptions = { timeoutMs: 300_000, retry: () => true };

async function runDeployment(
  client: Client,
  running: ReadonlyMap<string, OwnProcess>,
  restartLeaders: () => void,
): Promise<void> {
  const target = { namespace: "default", name: "web" };
  const labels = { app: "web" };
  const containers = [{ name: "main", image: "busybox:1.35", command: ["sh", "-c", "trap exit TERM; sleep 3600 & wait"] }];
  const spec = { replicas: 1, selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers } } };
  const ended = (): string[] => [...running].filter(([, process]) => process.end() !== undefined).map(([name]) => name);
  const untilAlive = <T>(what: string, ask: () => Promise<T | undefined | false>): Promise<T | true> =>
    waitFor<T | true>(
      what,
      async () => {
        restartLeaders();
        return ended().length > 0 || ask();
      },
      whileStarting,
    ).then((answer) => {
      const [name] = ended();
      if (name !== undefined) throw new Error(`${name} has ended: ${running.get(name)?.log().slice(-1_500)}`);
      return answer;
    });
  await untilAlive("the Deployment to be created", async () => {
    const signal = AbortSignal.timeout(20_000);
    await client.create(deployments, { metadata: target, spec }, { signal }).catch((err: unknown) => {
      if ((err as { reason?: string }).reason !== "AlreadyExists") throw err;
    });
    return true;
  });
  await untilAlive("the Deployment to be available", async () => {
    const signal = AbortSignal.timeout(20_000);
    return (await client.get<Deployment>(deployments, target, { signal })).status?.availableReplicas === 1;
  });
}

const busyMs = 120_000;

/** Keeps one core busy until the signal is aborted, for two minutes at most. */
function keepBusy(signal: AbortSignal): void {
  const child = spawn(process.execPath, ["-e", `const end = Date.now() + ${busyMs}; while (Date.now() < end);`], {
    stdio: "ignore",
  });
  signal.addEventListener("abort", () => void child.kill("SIGKILL"), { once: true });
}

/** Busy one third of the time. */
async function pulse(process: OwnProcess, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && process.end() === undefined) {
    process.signal("SIGSTOP");
    await delay(200);
    process.signal("SIGCONT");
    await delay(100);
  }
}
