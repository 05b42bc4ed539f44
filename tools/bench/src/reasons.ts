import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type Client, newClient } from "@coxswain/apimachinery/client/client";
import { loadKubeconfig } from "@coxswain/apimachinery/client/kubeconfig";
import { isAlreadyExists } from "@coxswain/apimachinery/objects/errors/predicates";
import { nodes, pods, replicaSets } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { closedLoop } from "./load.ts";
import { median } from "./median.ts";
import type { ReasonsOptions } from "./options.ts";
import { cpuSeconds } from "./process-usage.ts";
import { estimateOf, mostShare, verdictOf } from "./share.ts";

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..");
const namespace = "default";
const image = "busybox:1.35";

/** The work of one round, and the daemon whose CPU time is measured. */
interface Work {
  readonly daemon: string;
  readonly what: string;
  readonly rounds: number;
  run(cluster: Cluster, round: number): Promise<void>;
  /** Not measured. */
  clean(cluster: Cluster): Promise<void>;
}

interface Cluster {
  readonly isKeeping: boolean;
  readonly client: Client;
  pidOf(daemon: string): number;
}

/**
 * `main.ts reasons`: what it costs the daemons to keep the reasons of their decisions. Two clusters of real daemons run side by
 * side, one of which keeps none (COXSWAIN_DECISIONS=off); the same work is done by one and the other in turn.
 * @returns whether every daemon was shown to be within the limit
 */
export async function benchReasons({ rounds, pods: podCount, only }: ReasonsOptions): Promise<boolean> {
  const state = mkdtempSync(join(tmpdir(), "cox-bench-reasons-"));
  const started: string[] = [];
  try {
    const clusters: Cluster[] = [];
    for (const [name, isKeeping] of [
      ["with", true],
      ["without", false],
    ] as const) {
      started.push(name);
      clusters.push(await startCluster(state, name, isKeeping));
    }
    const results: boolean[] = [];
    for (const work of [scheduling(podCount, rounds), replicas(podCount, rounds), containers(rounds)])
      if (work.daemon.includes(only)) results.push(await compare(work, clusters));
    return results.every(Boolean);
  } finally {
    for (const name of started) cox(state, true, "down", "--purge", "--name", name);
    rmSync(state, { recursive: true, force: true });
  }
}

function cox(state: string, isKeeping: boolean, ...args: string[]): string {
  const env = { ...process.env, COX_STATE: state, ...(!isKeeping && { COXSWAIN_DECISIONS: "off" }) };
  return execFileSync(join(root, "cox"), args, { env, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
}

async function startCluster(state: string, name: string, isKeeping: boolean): Promise<Cluster> {
  cox(
    ...([state, isKeeping, "up", "--name", name, "--node-name", name, "--etcd-unsafe-no-fsync"] as const),
    // Requests must not wait for the client's own limit: the daemon would be idle for most of a round.
    ...["--kube-controller-manager-arg", "kube-api-qps=1000", "--kube-controller-manager-arg", "kube-api-burst=2000"],
    ...["--kube-scheduler-arg", "kube-api-qps=1000", "--kube-scheduler-arg", "kube-api-burst=2000"],
    ...["--kubelet-arg", "max-pods=200"],
  );
  const client = newClient({ ...(await loadKubeconfig(join(state, "clusters", name, "admin.conf"))), qps: -1 });
  const lines = cox(state, isKeeping, "status", "--name", name).split("\n");
  return {
    isKeeping,
    client,
    pidOf(daemon) {
      const pid = lines.flatMap((line) => /^(\S+) +running, pid (\d+)/.exec(line) ?? []);
      const at = pid.indexOf(daemon);
      if (at < 0) throw new Error(`${daemon} of the cluster ${name} does not run`);
      return Number(pid[at + 1]);
    },
  };
}

/** Rounds of one cluster and the other, in turns; the first of each warms it up. */
async function compare(work: Work, clusters: readonly Cluster[]): Promise<boolean> {
  const spent = new Map<Cluster, number[]>(clusters.map((cluster) => [cluster, []]));
  for (let round = 0; round <= work.rounds; round++) {
    for (const cluster of round % 2 === 0 ? clusters : clusters.toReversed()) {
      const pid = cluster.pidOf(work.daemon);
      const before = cpuSeconds(pid);
      await work.run(cluster, round);
      const seconds = cpuSeconds(pid) - before;
      if (round > 0) spent.get(cluster)?.push(seconds);
      await work.clean(cluster);
      await sleep(1000);
    }
  }
  const of = (isKeeping: boolean) => spent.get(clusters.find((cluster) => cluster.isKeeping === isKeeping) as Cluster) ?? [];
  const [kept, none] = [of(true), of(false)];
  const shares = kept.map((seconds, i) => seconds / (none[i] as number) - 1);
  const verdict = verdictOf(shares);
  const percent = (value: number): string => `${(value * 100).toFixed(1)} %`;
  const { share, error } = estimateOf(shares);
  console.log(
    `${work.daemon}, ${work.what}: ${median(none).toFixed(2)} s of CPU without reasons, ${median(kept).toFixed(2)} s with them: ` +
      `${percent(share)} ± ${percent(error)} (${shares.length} pairs of rounds), limit at most ${percent(mostShare)}: ${verdict}`,
  );
  return verdict === "ok";
}

const everywhere = [{ operator: "Exists" }];
const fakeNodes = 20;

/** Pods for nodes without a kubelet; every fifth does not fit. */
function scheduling(count: number, rounds: number): Work {
  const fits = Math.ceil(count * 0.8);
  const cpu = `${Math.ceil(fits / fakeNodes)}`;
  return {
    daemon: "kube-scheduler",
    what: `${count} pods over ${fakeNodes} nodes, of which ${fits} fit`,
    rounds,
    async run({ client }, round) {
      for (let i = 0; i < fakeNodes; i++) {
        await client.create(nodes, {
          metadata: { name: `fake-${i}`, labels: { bench: "fake" } },
          status: { capacity: { cpu, memory: "64Gi", pods: "500" }, allocatable: { cpu, memory: "64Gi", pods: "500" } },
        } as never);
      }
      await createAll(count, (i) =>
        client.create(pods, {
          metadata: { name: `scheduled-${round}-${i}`, namespace, labels: { bench: "scheduled" } },
          spec: {
            ...{ nodeSelector: { bench: "fake" }, tolerations: everywhere },
            containers: [{ name: "main", image, resources: { requests: { cpu: "1" } } }],
          },
        } as never),
      );
      const isDecided = async (): Promise<boolean> => {
        const { items } = await client.list<{ status?: { conditions?: { type: string }[] } }>(
          pods,
          { namespace },
          { labelSelector: "bench=scheduled" },
        );
        return items.every(({ status }) => status?.conditions?.some(({ type }) => type === "PodScheduled") === true);
      };
      await until(isDecided, "all pods to be scheduled or refused");
    },
    async clean({ client }) {
      await removePods(client, "bench=scheduled");
      for (let i = 0; i < fakeNodes; i++) await client.delete(nodes, { name: `fake-${i}` });
    },
  };
}

/** A ReplicaSet whose pods stay without a node. */
function replicas(count: number, rounds: number): Work {
  return {
    daemon: "kube-controller-manager",
    what: `a ReplicaSet of ${count} pods, created and deleted`,
    rounds,
    async run({ client }, round) {
      const name = `set-${round}`;
      const labels = { bench: name };
      await client.create(replicaSets, {
        metadata: { name, namespace },
        spec: {
          ...{ replicas: count, selector: { matchLabels: labels } },
          template: { metadata: { labels }, spec: { schedulerName: "none", containers: [{ name: "main", image }] } },
        },
      } as never);
      const hasAll = async (): Promise<boolean> => {
        const { status } = await client.get<{ status?: { replicas?: number } }>(replicaSets, { namespace, name });
        return status?.replicas === count;
      };
      await until(hasAll, "all replicas");
      await client.delete(replicaSets, { namespace, name }, { propagationPolicy: "Background" });
      await untilNone(client, `bench=${name}`);
    },
    async clean() {},
  };
}

const podsOfNode = 20;

/** Pods of the node: most run, some crash, some have no image, some want a volume that is not there. */
function containers(rounds: number): Work {
  const kinds = [
    { args: ["sleep", "3600"] },
    { args: ["sleep", "3600"] },
    { args: ["sleep", "3600"] },
    { args: ["false"] },
    { image: "cox.local/not-there:1", imagePullPolicy: "Never" },
  ];
  return {
    daemon: "kubelet",
    what: `${podsOfNode} pods, of which some cannot start, created and deleted`,
    rounds,
    async run({ client }, round) {
      await createAll(podsOfNode, (i) =>
        client.create(pods, {
          metadata: { name: `run-${round}-${i}`, namespace, labels: { bench: "run" } },
          spec: {
            ...{ tolerations: everywhere, terminationGracePeriodSeconds: 0 },
            containers: [{ name: "main", image, imagePullPolicy: "IfNotPresent", ...kinds[i % kinds.length] }],
          },
        } as never),
      );
      const hasStarted = async (): Promise<boolean> => {
        const { items } = await client.list<{ status?: { containerStatuses?: { state?: { running?: object } }[] } }>(
          pods,
          { namespace },
          { labelSelector: "bench=run" },
        );
        const running = items.filter(({ status }) => status?.containerStatuses?.every(({ state }) => state?.running));
        return running.length >= (podsOfNode * 3) / 5;
      };
      await until(hasStarted, "the pods to run");
      // Those that fail are tried again meanwhile.
      await sleep(15_000);
      await removePods(client, "bench=run");
    },
    async clean() {},
  };
}

const atOnce = 16;

async function createAll(count: number, create: (index: number) => Promise<unknown>): Promise<void> {
  const operation = async (index: number) => {
    await patiently(() => create(index).catch(ignoreExisting));
    return { totalMs: 0 };
  };
  await closedLoop(operation, { concurrency: atOnce, seconds: 600, maxOperations: count });
}

/** Of an attempt whose answer did not arrive. */
function ignoreExisting(err: unknown): void {
  if (!isAlreadyExists(err)) throw err;
}

/** On a loaded machine requests exceed the server's time limit. */
async function patiently<T>(request: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await request();
    } catch (err) {
      if (attempt === 5) throw err;
      await sleep(1000);
    }
  }
}

async function removePods(client: Client, labelSelector: string): Promise<void> {
  await patiently(() => client.deleteCollection(pods, { namespace }, { labelSelector, gracePeriodSeconds: 0 }));
  await untilNone(client, labelSelector);
}

async function untilNone(client: Client, labelSelector: string): Promise<void> {
  const isEmpty = async (): Promise<boolean> => (await client.list(pods, { namespace }, { labelSelector })).items.length === 0;
  await until(isEmpty, "the pods to be gone");
}

const until = (condition: () => Promise<boolean>, what: string): Promise<unknown> =>
  waitFor(condition, { timeoutMs: 300_000, what, retry: () => true });
