import type { Pod, PodSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { nodes, pods, priorityClasses } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { DaemonCluster } from "./cluster.ts";
import { addNodes, addPods, benchPod, nodeName, removeAll } from "./cluster-objects.ts";
import type { Scenario, ScenarioLimits } from "./scenario.ts";

interface SchedulerSizes {
  /** One row for each number of nodes. */
  readonly nodes: readonly number[];
  readonly pods: number;
  /** Number of Pods that preempt another Pod. */
  readonly preemptors: number;
  /** Number of unschedulable Pods that are queued while others are scheduled. */
  readonly waiting: number;
}

/** Twice the throughput for half the CPU time. */
const limits: ScenarioLimits = { seconds: 0.5, cpu: 0.5 };

const isBound = (pod: Pod): boolean => (pod.spec.nodeName ?? "") !== "";
const isRefused = (pod: Pod): boolean =>
  pod.status?.conditions?.some(({ type, status }) => type === "PodScheduled" && status === "False") === true;

export function schedulerScenarios(sizes: SchedulerSizes): Scenario[] {
  const most = Math.min(1000, Math.max(...sizes.nodes));
  return [
    ...sizes.nodes.map((count) => plain(count, sizes.pods)),
    spreading(most, sizes.pods),
    preemption(sizes.preemptors),
    waiting(most, sizes.pods, sizes.waiting),
  ];
}

/** Creates the Pods, 16 concurrently; the measured time ends when a watcher has seen the last one bound. */
async function bindAll(cluster: DaemonCluster, count: number, podOf: (index: number) => Pod): Promise<number> {
  const before = cluster.pods.count(isBound);
  await addPods(cluster, count, podOf);
  await cluster.pods.until("all pods to be bound", before + count, isBound);
  return count;
}

async function removePods(cluster: DaemonCluster): Promise<void> {
  await removeAll(cluster, pods);
  await cluster.pods.until("no pods", 0, () => true);
}

async function cleanNodes(cluster: DaemonCluster): Promise<void> {
  await removePods(cluster);
  await removeAll(cluster, nodes);
}

function plain(nodeCount: number, podCount: number): Scenario {
  return {
    name: `${podCount} pods on ${nodeCount} nodes`,
    limits,
    prepare: (cluster) => addNodes(cluster, nodeCount),
    run: (cluster) => bindAll(cluster, podCount, (index) => benchPod({ name: `pod-${index}` })),
    clean: cleanNodes,
  };
}

const mostOfGroup = 10;

/** Groups of ten Pods, or of as many as there are nodes, with anti-affinity by host and a topology spread constraint over the zones. */
function spreading(nodeCount: number, podCount: number): Scenario {
  const groupSize = Math.min(mostOfGroup, nodeCount);
  return {
    name: `${podCount} pods with anti-affinity and spreading on ${nodeCount} nodes`,
    limits,
    prepare: (cluster) => addNodes(cluster, nodeCount),
    run: (cluster) =>
      bindAll(cluster, podCount, (index) => {
        const group = `group-${Math.floor(index / groupSize)}`;
        return benchPod({ name: `pod-${index}`, labels: { group }, spec: apart(group) });
      }),
    clean: cleanNodes,
  };
}

function apart(group: string): Partial<PodSpec> {
  const labelSelector = { matchLabels: { group } };
  return {
    affinity: {
      podAntiAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [{ labelSelector, topologyKey: "kubernetes.io/hostname" }],
      },
    },
    topologySpreadConstraints: [
      { labelSelector, maxSkew: 1, topologyKey: "topology.kubernetes.io/zone", whenUnsatisfiable: "DoNotSchedule" },
    ],
  };
}

const victimsOfNode = 4;
const urgent = "urgent";

/** Nodes filled with four Pods each; each new Pod preempts one of them. */
function preemption(count: number): Scenario {
  const nodeCount = Math.ceil(count / victimsOfNode);
  return {
    name: `${count} pods preempt others on ${nodeCount} nodes`,
    limits,
    async prepare(cluster) {
      const { client } = cluster;
      const metadata = { name: urgent };
      await client.create(priorityClasses, { apiVersion: "scheduling.k8s.io/v1", kind: "PriorityClass", metadata, value: 1000 });
      await addNodes(cluster, nodeCount, { cpu: `${victimsOfNode}`, memory: "64Gi", pods: "110" });
      await addPods(cluster, nodeCount * victimsOfNode, (index) =>
        benchPod({ name: `victim-${index}`, cpu: "1", spec: { nodeName: nodeName(index % nodeCount) } }),
      );
    },
    async run(cluster) {
      const isUrgent = (pod: Pod): boolean => pod.spec.priorityClassName === urgent && isBound(pod);
      const spec = { priorityClassName: urgent };
      await addPods(cluster, count, (index) => benchPod({ name: `urgent-${index}`, cpu: "1", spec }));
      await cluster.pods.until("all urgent pods to be bound", count, isUrgent);
      return count;
    },
    async clean(cluster) {
      await cleanNodes(cluster);
      await cluster.client.delete(priorityClasses, { name: urgent });
    },
  };
}

/** Like the first rows, while unschedulable Pods are queued. */
function waiting(nodeCount: number, podCount: number, waitingCount: number): Scenario {
  return {
    name: `${podCount} pods on ${nodeCount} nodes, ${waitingCount} unschedulable ones waiting`,
    limits,
    async prepare(cluster) {
      await addNodes(cluster, nodeCount);
      await addPods(cluster, waitingCount, (index) => benchPod({ name: `waiting-${index}`, cpu: "1000" }));
      await cluster.pods.until("all waiting pods to be refused", waitingCount, isRefused);
    },
    run: (cluster) => bindAll(cluster, podCount, (index) => benchPod({ name: `pod-${index}` })),
    clean: cleanNodes,
  };
}
