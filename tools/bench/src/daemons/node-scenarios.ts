import { setTimeout as sleep } from "node:timers/promises";
import type { Pod, PodSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Settings } from "@coxswain/dev-cluster/settings";
import { addPods, removeAll } from "./cluster-objects.ts";
import type { NodeCluster } from "./node-stage.ts";
import { exec, followLog, forwardedGet } from "./node-streams.ts";
import { isReady } from "./pod-view.ts";
import { repeat } from "./repeat.ts";
import type { Scenario, ScenarioLimits } from "./scenario.ts";

interface NodeSizes {
  /** Pods that are started and deleted together, and that run while the kubelet is idle. */
  readonly pods: number;
  readonly idleSeconds: number;
  /** Number of exec requests and of log reads, which are sequential. */
  readonly requests: number;
}

/** May restart the kubelet. */
type NodeScenario = Scenario<NodeCluster>;

export function nodeScenarios({ pods: count, idleSeconds, requests }: NodeSizes): NodeScenario[] {
  return [
    onePod,
    manyPods(count),
    deletion(count),
    idle(count, idleSeconds),
    restart(count),
    commands(requests),
    execs(requests),
    logs(requests),
    following(requests / 5),
    forwarding(requests / 5),
  ];
}

const image = "docker.io/library/busybox:1.36";
export const isRunning = (pod: Pod): boolean => pod.status?.phase === "Running";

/** Exits immediately on SIGTERM. */
const script = "trap 'exit 0' TERM; echo started; while :; do sleep 3600 & wait $!; done";

/** A Pod on the node under test. */
export function aNodePod(
  { nodeName }: Pick<Settings, "nodeName">,
  name: string,
  more: Partial<PodSpec["containers"][number]> = {},
): Pod {
  const container = { name: "main", image, command: ["sh", "-c", script], ...more };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name },
    spec: {
      nodeName,
      containers: [container],
      automountServiceAccountToken: false,
      tolerations: [{ operator: "Exists" }],
    },
  };
}

const ofBench = (cluster: NodeCluster, matches: (pod: Pod) => boolean) => (pod: Pod) =>
  pod.metadata.namespace === cluster.namespace && matches(pod);

async function startPods(cluster: NodeCluster, count: number, more?: Partial<PodSpec["containers"][number]>): Promise<void> {
  await addPods(cluster, count, (index) => aNodePod(cluster.settings, `pod-${index}`, more));
  await cluster.pods.until("all pods to run", count, ofBench(cluster, isRunning));
}

async function removePods(cluster: NodeCluster): Promise<void> {
  await removeAll(cluster, pods);
  await cluster.pods.until(
    "no pods",
    0,
    ofBench(cluster, () => true),
  );
}

const startLimits: ScenarioLimits = { seconds: 0.8 };

const onePod: NodeScenario = {
  name: "one pod, bound to Running",
  limits: startLimits,
  async run(cluster) {
    await startPods(cluster, 1);
    return 1;
  },
  clean: removePods,
};

const manyPods = (count: number): NodeScenario => ({
  name: `${count} pods at once, bound to Running`,
  limits: startLimits,
  async run(cluster) {
    await startPods(cluster, count);
    return count;
  },
  clean: removePods,
});

const deletion = (count: number): NodeScenario => ({
  name: `${count} pods deleted, whose containers end at once`,
  limits: { seconds: 0.8, cpu: 1 },
  prepare: (cluster) => startPods(cluster, count),
  async run(cluster) {
    const { client, namespace } = cluster;
    await repeat(count, (index) => client.delete(pods, { namespace, name: `pod-${index}` }));
    await cluster.pods.until(
      "no pods",
      0,
      ofBench(cluster, () => true),
    );
    return count;
  },
});

const probe = { tcpSocket: { port: 8080 }, periodSeconds: 10, timeoutSeconds: 5 };

const idle = (count: number, seconds: number): NodeScenario => ({
  name: `idle for ${seconds} s with ${count} pods of two probes each`,
  limits: { cpu: 0.5, memory: 0.7 },
  async prepare(cluster) {
    const server = { command: ["sh", "-c", "exec httpd -f -p 8080"], readinessProbe: probe, livenessProbe: probe };
    await startPods(cluster, count, server);
    await cluster.pods.until("all pods to be ready", count, ofBench(cluster, isReady));
  },
  async run() {
    await sleep(seconds * 1000);
    return count;
  },
  clean: removePods,
});

/** The time until the restarted kubelet has started a waiting Pod; by then it has recovered the running Pods. */
const restart = (count: number): NodeScenario => ({
  name: `kubelet restarted with ${count} pods, until it has started another`,
  limits: { seconds: 0.5 },
  async prepare(cluster) {
    await startPods(cluster, count);
    await cluster.stopKubelet();
    await cluster.client.create(pods, aNodePod(cluster.settings, "waiting"), { namespace: cluster.namespace });
  },
  async run(cluster) {
    await cluster.startKubelet();
    await cluster.pods.until("all pods to run", count + 1, ofBench(cluster, isRunning));
    return 1;
  },
  clean: removePods,
});

/** Sequential requests through the API server. */
function requestsOf(what: string, count: number, method: string, pathOf: (cluster: NodeCluster) => string): NodeScenario {
  return {
    name: `${count} ${what}, one after the other`,
    limits: { seconds: 1 },
    prepare: (cluster) => startPods(cluster, 1),
    async run(cluster) {
      for (let index = 0; index < count; index++) {
        const { status, body } = await cluster.client.raw(method, pathOf(cluster), { headers: { accept: "*/*" } });
        if (status !== 200) throw new Error(`${method} ${pathOf(cluster)}: ${status} ${body.toString().slice(0, 300)}`);
      }
      return count;
    },
    clean: removePods,
  };
}

const commands = (count: number): NodeScenario =>
  requestsOf("commands run in a container", count, "POST", ({ settings, namespace }) => {
    return `/api/v1/nodes/${settings.nodeName}/proxy/run/${namespace}/pod-0/main?cmd=true`;
  });

const execs = (count: number): NodeScenario => ({
  name: `${count} execs over a WebSocket, one after the other`,
  limits: { seconds: 1 },
  prepare: (cluster) => startPods(cluster, 1),
  async run(cluster) {
    for (let index = 0; index < count; index++) await exec(cluster, "pod-0", ["true"]);
    return count;
  },
  clean: removePods,
});

const logLines = 60_000;
/** Below the size at which kubelets rotate a log. */
const logger = { command: ["sh", "-c", `yes "$(printf '%0100d' 0)" | head -n ${logLines}; echo the last line; ${script}`] };

/** One operation is a MB, so that the time and CPU of each compare. */
const following = (count: number): NodeScenario => ({
  name: `a log of 6 MB followed from its start, ${Math.ceil(count)} times`,
  limits: { cpu: 1, seconds: 1 },
  async prepare(cluster) {
    await startPods(cluster, 1, logger);
    await followLog(cluster, "pod-0", "the last line");
  },
  async run(cluster) {
    let bytes = 0;
    for (let index = 0; index < count; index++) bytes += await followLog(cluster, "pod-0", "the last line");
    return bytes / 1e6;
  },
  clean: removePods,
});

const forwarded = { command: ["sh", "-c", "dd if=/dev/zero of=/tmp/big bs=1M count=32 && exec httpd -f -p 8080 -h /tmp"] };

/** As above. */
const forwarding = (count: number): NodeScenario => ({
  name: `32 MB through a forwarded port, ${Math.ceil(count)} times`,
  limits: { cpu: 1, seconds: 1 },
  async prepare(cluster) {
    await startPods(cluster, 1, { ...forwarded, readinessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 1 } });
    await cluster.pods.until("the pod to be ready", 1, ofBench(cluster, isReady));
  },
  async run(cluster) {
    let bytes = 0;
    for (let index = 0; index < count; index++) bytes += await forwardedGet(cluster, "pod-0", 8080, "/big");
    return bytes / 1e6;
  },
  clean: removePods,
});

const logs = (count: number): NodeScenario =>
  requestsOf("reads of a log", count, "GET", ({ namespace }) => `/api/v1/namespaces/${namespace}/pods/pod-0/log`);
