import { loadavg } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "@coxswain/apimachinery/client/client";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { type ControlPlane, makeNamespace, Parts, startControlPlane } from "../daemons/cluster.ts";
import { programsOf, startDaemon } from "../daemons/daemon.ts";
import { machineLine } from "../daemons/options.ts";
import { repeat } from "../daemons/repeat.ts";
import { openLoop, percentile } from "../load.ts";
import { cpuSeconds, residentMb } from "../process-usage.ts";
import { LoadProcess } from "./child.ts";
import { Churn, keptPod, namespaceOf } from "./kept-pods.ts";
import { parseScaleOptions, type ScaleSizes, scaleHelp } from "./options.ts";
import { isWithin, type ScaleFigures, verdictTable } from "./verdict.ts";
import type { WatchCounts } from "./watchers.ts";

/** `main.ts scale [flags]`. @returns true when all figures are within their limits */
export async function benchScale(argv: readonly string[]): Promise<boolean> {
  const sizes = parseScaleOptions(argv);
  if (sizes === undefined) {
    process.stdout.write(scaleHelp());
    return true;
  }
  const figures = await measureScale(sizes, (line) => console.log(line));
  console.log(verdictTable(figures));
  return isWithin(figures);
}

const here = import.meta.dirname;
/** As docs/scaling.md advises for an API server of many pods. */
const largeClusterFlags = ["--max-semi-space-size=64"];

/** @param log receives the progress, and costs of the run that are no figures of the table */
export async function measureScale(sizes: ScaleSizes, log: (line: string) => void): Promise<ScaleFigures> {
  const parts = new Parts();
  try {
    log(`${machineLine(loadavg()[0] ?? 0)}; ${JSON.stringify(sizes)}`);
    const plane = await startControlPlane(parts, { etcd: ["--quota-backend-bytes=8589934592"], node: largeClusterFlags });
    const nodes = await LoadProcess.start(join(here, "hollow-nodes.ts"), [plane.kubeconfig, String(sizes.nodes)]);
    parts.add(() => nodes.stop());
    const [program] = programsOf("kube-scheduler", {});
    if (program === undefined) throw new Error("there is no scheduler");
    const flags = ["--leader-elect=false", "--kube-api-qps=10000", "--kube-api-burst=10000"];
    const scheduler = await startDaemon(program, [`--kubeconfig=${plane.kubeconfig}`, ...flags]);
    parts.add(() => scheduler.stop());
    await fill(plane.client, sizes, log);
    await sleep(sizes.settleSeconds * 1_000);
    log(`filled: API server ${residentMb(plane.apiPid).toFixed(0)} MB, scheduler ${residentMb(scheduler.pid).toFixed(0)} MB`);
    return await churn(plane, { scheduler: scheduler.pid, nodes: nodes.pid }, sizes, parts, log);
  } finally {
    await parts.stop();
  }
}

/** Creates Pods that are already bound, spread over namespaces and nodes; resolves when all are running. */
async function fill(client: Client, sizes: ScaleSizes, log: (line: string) => void): Promise<void> {
  for (let index = 0; index < sizes.namespaces; index++) await makeNamespace(client, namespaceOf(index, sizes));
  const start = performance.now();
  await repeat(sizes.pods, (index) => {
    const pod = keptPod(index, sizes, `node-${(index % sizes.nodes) + 1}`);
    return client.create(pods, pod, { namespace: namespaceOf(index, sizes) });
  });
  const isEach = async (): Promise<boolean> => {
    const { items } = await client.list(pods, {}, { fieldSelector: "status.phase!=Running", limit: 1, resourceVersion: "0" });
    return items.length === 0;
  };
  await waitFor(isEach, { what: "all pods to run", timeoutMs: 3_600_000, intervalMs: 500 });
  log(`${sizes.pods} pods created and running in ${((performance.now() - start) / 1000).toFixed(0)} s`);
}

const getEveryMs = 100;
const listEveryMs = 5_000;
/** Time limit for scheduling the Pods that were created last. */
const mostSettleMs = 30_000;

async function churn(
  { client, url, token, apiPid, etcdPid }: ControlPlane,
  others: { readonly scheduler: number; readonly nodes: number },
  sizes: ScaleSizes,
  parts: Parts,
  log: (line: string) => void,
): Promise<ScaleFigures> {
  const { metadata } = await client.list(pods, {}, { limit: 1 });
  const version = metadata.resourceVersion ?? "";
  const path = `/api/v1/pods?watch=1&timeoutSeconds=100000&resourceVersion=${version}`;
  const watchers = await LoadProcess.start(join(here, "watchers.ts"), [url, token, String(sizes.watchers), path]);
  parts.add(() => watchers.stop());
  const replacing = new Churn(client, sizes);
  const ending = new AbortController();
  let ownEnded = 0;
  const following = replacing.follow(version, ending.signal).catch((err: unknown) => {
    if (ending.signal.aborted) return;
    ownEnded = 1;
    log(`the watch that tells when pods are bound ended: ${messageOf(err)}`);
  });
  const [gets, lists]: [number[], number[]] = [[], []];
  /** @returns ms; Infinity for a request that failed, which exceeds each limit */
  const probe = (path: string): Promise<number> =>
    timed(client, path).catch((err: unknown) => {
      log(`${path}: ${messageOf(err)}`);
      return Number.POSITIVE_INFINITY;
    });
  let mostServerMb = 0;
  const probing = Promise.all([
    every(getEveryMs, ending.signal, async () => {
      const { namespace, name } = replacing.middle;
      gets.push(await probe(`/api/v1/namespaces/${namespace}/pods/${name}`));
    }),
    every(listEveryMs, ending.signal, async (round) => {
      lists.push(await probe(`/api/v1/namespaces/${namespaceOf(round, sizes)}/pods`));
    }),
    every(1_000, ending.signal, async () => {
      mostServerMb = Math.max(mostServerMb, residentMb(apiPid));
    }),
  ]);
  const pids = { "API server": apiPid, etcd: etcdPid, ...others, watches: watchers.pid, "this process": process.pid };
  const usage = (): [string, number][] => Object.entries(pids).map(([name, pid]) => [name, cpuSeconds(pid)]);
  const before = new Map(usage());
  const start = performance.now();
  const load = { perSecond: sizes.churn, seconds: sizes.seconds, mostUnderWay: sizes.churn * 30, atOnce: sizes.atOnce };
  // An overloaded server ends the load; the table is printed all the same.
  await openLoop(() => replacing.replaceOne(), load).catch((err: unknown) => log(`the load ended early: ${messageOf(err)}`));
  await waitFor(() => replacing.unbound === 0, { what: "the last pods to be bound", timeoutMs: mostSettleMs }).catch(() => {});
  const seconds = (performance.now() - start) / 1000;
  const { events, bytes, ended } = await watchers.report<WatchCounts>();
  const used = usage().map(([name, total]): [string, number] => [name, total - (before.get(name) ?? 0)]);
  const cores = used.map(([name, cpu]) => `${name} ${(cpu / seconds).toFixed(2)}`);
  const together = used.reduce((sum, [, cpu]) => sum + cpu, 0);
  const cpuPerPod = [...used, ["together", together] as const].map(
    ([name, cpu]) => `${name} ${((cpu * 1_000) / replacing.begun).toFixed(2)}`,
  );
  ending.abort(new Error("measured"));
  await Promise.all([probing, following]);
  log(`${replacing.begun} pods replaced in ${seconds.toFixed(0)} s; ${gets.length} gets, ${lists.length} lists`);
  log(`events to watchers: ${(events / seconds).toFixed(0)} a second, ${(bytes / seconds / 1e6).toFixed(1)} MB a second`);
  log(`cores: ${cores.join(", ")}`);
  log(`CPU ms per replaced pod: ${cpuPerPod.join(", ")}`);
  log(
    `p50 ms: get ${percentile(gets, 0.5).toFixed(1)}, list ${percentile(lists, 0.5).toFixed(0)}, schedule ${percentile(replacing.scheduleMs, 0.5).toFixed(0)}`,
  );
  return {
    getP99: percentile(gets, 0.99),
    listP99: percentile(lists, 0.99),
    scheduleP99: percentile(replacing.scheduleMs, 0.99),
    mostServerMb,
    endedWatches: ended + ownEnded,
    unbound: replacing.unbound + sizes.churn * sizes.seconds - replacing.begun,
  };
}

/** Calls `work` sequentially with pauses of `ms` until `signal` is aborted. @throws its error */
async function every(ms: number, signal: AbortSignal, work: (round: number) => Promise<void>): Promise<void> {
  for (let round = 0; !signal.aborted; round++) {
    await work(round);
    await sleep(ms, undefined, { signal }).catch(() => {});
  }
}

/** @returns ms until the complete response was read @throws Error for a status other than 200 */
async function timed(client: Client, path: string): Promise<number> {
  const start = performance.now();
  const { status } = await client.raw("GET", path);
  if (status !== 200) throw new Error(`GET ${path}: ${status}`);
  return performance.now() - start;
}
