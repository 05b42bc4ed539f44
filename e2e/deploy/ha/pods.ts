import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { MachineCluster } from "../cluster.ts";

/** On each node; a file for each pod. */
const folder = "/var/log/runs";
const tolerationSeconds = 10;

const podSpec = (app: string) => ({
  terminationGracePeriodSeconds: 5,
  tolerations: ["not-ready", "unreachable"].map((key) => ({
    key: `node.kubernetes.io/${key}`,
    operator: "Exists",
    effect: "NoExecute",
    tolerationSeconds,
  })),
  containers: [
    {
      name: app,
      image: "busybox:1.35",
      // The time since the boot of this machine is the same on all of the machines that stand on it, and no clock jumps in it.
      command: [
        "sh",
        "-c",
        `trap exit TERM
        note() { read now rest </proc/uptime; echo "$1 $POD $now" >>/runs/$UID; }
        note begin
        while :; do note beat; sleep 0.5 & wait; done`,
      ],
      env: [
        { name: "POD", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
        { name: "UID", valueFrom: { fieldRef: { fieldPath: "metadata.uid" } } },
      ],
      volumeMounts: [{ name: "runs", mountPath: "/runs" }],
    },
  ],
  volumes: [{ name: "runs", hostPath: { path: folder, type: "DirectoryOrCreate" } }],
});

const workload = (kind: "Deployment" | "StatefulSet", app: string, replicas: number) => ({
  apiVersion: "apps/v1",
  kind,
  metadata: { name: app },
  spec: {
    replicas,
    ...(kind === "StatefulSet" && { serviceName: app }),
    selector: { matchLabels: { app } },
    template: { metadata: { labels: { app } }, spec: podSpec(app) },
  },
});

/** A Deployment `moving` of one pod, and a StatefulSet `single` of two, each of whose names may run only once. All pods record that they run. */
export async function createPods(cluster: MachineCluster, by: string): Promise<void> {
  const items = [workload("Deployment", "moving", 1), workload("StatefulSet", "single", 2)];
  await cluster.machine(by).write("/root/pods.json", JSON.stringify({ apiVersion: "v1", kind: "List", items }));
  await cluster.kubectl(by, "create", "--filename", cluster.machine(by).path("/root/pods.json"));
}

export interface Run {
  readonly uid: string;
  readonly pod: string;
  readonly node: string;
  /** How often its container began. */
  readonly begins: number;
  /** In seconds of one clock. */
  readonly first: number;
  readonly last: number;
}

/** What the containers have noted so far. */
export function runsOn(cluster: MachineCluster, nodes: readonly string[]): Run[] {
  return nodes.flatMap((node) => {
    const path = cluster.machine(node).path(folder);
    if (!existsSync(path)) return [];
    return readdirSync(path).map((uid) => runOf(uid, node, readFileSync(join(path, uid), "utf8")));
  });
}

function runOf(uid: string, node: string, text: string): Run {
  const lines = text
    .trimEnd()
    .split("\n")
    .map((line) => line.split(" "));
  const times = lines.map(([, , time]) => Number(time));
  return {
    ...{ uid, node, pod: lines[0]?.[1] ?? "" },
    begins: lines.filter(([what]) => what === "begin").length,
    first: Math.min(...times),
    last: Math.max(...times),
  };
}

/** Pure. @returns what ran twice: containers that began again, pods of one name at one time. */
export function runTwice(runs: readonly Run[]): string[] {
  const again = runs.filter(({ begins }) => begins !== 1).map(({ pod, uid, begins }) => `${pod} (${uid}) began ${begins} times`);
  const pairs = runs.flatMap((one, i) => runs.slice(i + 1).map((other) => [one, other] as const));
  const together = pairs
    .filter(([one, other]) => one.pod === other.pod && one.first <= other.last && other.first <= one.last)
    .map(
      ([one, other]) =>
        `${one.pod} ran on ${one.node} (${one.first} to ${one.last}) and on ${other.node} (${other.first} to ${other.last})`,
    );
  return [...again, ...together];
}
