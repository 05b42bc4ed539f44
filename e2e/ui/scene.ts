/** A cluster on paper, the same each time: what the screenshots show. */
import { createHash } from "node:crypto";
import type { KubeObject, OwnerReference } from "@coxswain/apimachinery/objects/meta/types";
import type { StoredObject } from "./etcd.ts";

/** The time of the screenshots. */
export const sceneMs = Date.UTC(2026, 4, 12, 14, 30, 0);

const ago = (minutes: number): string => `${new Date(sceneMs - minutes * 60_000).toISOString().slice(0, 19)}Z`;
/** Looks random, and is the same each time. */
const digest = (text: string): string => createHash("sha256").update(text).digest("hex");
const uidOf = (text: string): string => digest(text).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, "$1-$2-$3-$4-$5");
const letters = "bcdfghjklmnpqrstvwxz2456789";
const suffixOf = (text: string, length: number): string =>
  [...Buffer.from(digest(text), "hex").subarray(0, length)].map((byte) => letters[byte % letters.length]).join("");

interface Base {
  readonly namespace?: string;
  readonly name: string;
  readonly minutes: number;
  readonly owner?: KubeObject;
  readonly labels?: Record<string, string>;
}

function objectOf(folder: string, apiVersion: string, kind: string, base: Base, rest: object): StoredObject {
  const { namespace, name, minutes, owner, labels } = base;
  const references: OwnerReference[] =
    owner === undefined
      ? []
      : [
          {
            apiVersion: owner.apiVersion ?? "",
            kind: owner.kind ?? "",
            name: owner.metadata.name ?? "",
            uid: owner.metadata.uid ?? "",
            controller: true,
            blockOwnerDeletion: true,
          },
        ];
  const metadata = {
    ...(namespace !== undefined && { namespace }),
    name,
    uid: uidOf(`${kind} ${namespace} ${name}`),
    generation: 1,
    creationTimestamp: ago(minutes),
    ...(labels && { labels }),
    ...(references.length > 0 && { ownerReferences: references }),
  };
  return { folder, object: { apiVersion, kind, metadata, ...rest } };
}

const quiet = (type: string, minutes: number) => ({
  type,
  status: "False",
  reason: "Kubelet",
  message: "",
  lastHeartbeatTime: ago(0),
  lastTransitionTime: ago(minutes),
});

export function nodeOf(name: string, state: "ready" | "cordoned" | "away" = "ready", cpu = "4", memory = "16Gi"): StoredObject {
  const minutes = 60 * 24 * 12;
  const ready = {
    ...quiet("Ready", minutes),
    ...(state === "away"
      ? {
          status: "Unknown",
          reason: "NodeStatusUnknown",
          message: "Kubelet stopped posting node status.",
          lastTransitionTime: ago(11),
        }
      : { status: "True", reason: "KubeletReady", message: "kubelet is posting ready status" }),
  };
  const amounts = { cpu, memory, pods: "110" };
  const isFirst = name.endsWith("-1");
  const labels: Record<string, string> = isFirst ? { "node-role.kubernetes.io/control-plane": "" } : {};
  return objectOf(
    "minions",
    "v1",
    "Node",
    { name, minutes, labels },
    {
      spec: { podCIDR: "10.244.0.0/24", ...(state === "cordoned" && { unschedulable: true }) },
      status: {
        capacity: amounts,
        allocatable: amounts,
        conditions: [quiet("MemoryPressure", minutes), quiet("DiskPressure", minutes), quiet("PIDPressure", minutes), ready],
        addresses: [{ type: "InternalIP", address: `10.0.0.${1 + (Number.parseInt(digest(name).slice(0, 2), 16) % 250)}` }],
        nodeInfo: { kubeletVersion: "v1.23.17", osImage: "Debian GNU/Linux 12", kernelVersion: "6.1.0", architecture: "amd64" },
      },
    },
  );
}

export type PodState = "running" | "starting" | "crashing" | "no-image" | "unschedulable" | "completed";

const waiting: Partial<Record<PodState, readonly [reason: string, message: string]>> = {
  starting: ["ContainerCreating", ""],
  crashing: ["CrashLoopBackOff", "back-off 2m40s restarting failed container=main pod=…"],
  "no-image": ["ImagePullBackOff", 'Back-off pulling image "registry.example/shop/cart:2.4.1"'],
};

export interface PodOptions extends Base {
  readonly node: string;
  readonly state?: PodState;
  readonly image?: string;
  readonly restarts?: number;
}

export function podOf(options: PodOptions): StoredObject {
  const {
    node,
    state = "running",
    image = "registry.example/app:1.0",
    restarts = state === "crashing" ? 6 : 0,
    minutes,
  } = options;
  const [reason, message] = waiting[state] ?? [];
  const isRunning = state === "running";
  const isScheduled = state !== "unschedulable";
  const condition = (type: string, isTrue: boolean, more: object = {}) => ({
    type,
    status: isTrue ? "True" : "False",
    lastTransitionTime: ago(Math.min(minutes, 30)),
    ...more,
  });
  const containerState = isRunning
    ? { running: { startedAt: ago(minutes) } }
    : state === "completed"
      ? { terminated: { exitCode: 0, reason: "Completed", startedAt: ago(minutes), finishedAt: ago(minutes - 1) } }
      : { waiting: { reason, message } };
  const lastState =
    state === "crashing" ? { terminated: { exitCode: 1, reason: "Error", startedAt: ago(4), finishedAt: ago(3) } } : {};
  const why = "0/6 nodes are available: 1 node(s) were unschedulable, 5 Insufficient cpu.";
  const resources = { requests: { cpu: "150m", memory: "256Mi" } };
  return objectOf("pods", "v1", "Pod", options, {
    spec: {
      ...(isScheduled && { nodeName: node }),
      containers: [{ name: "main", image, resources, imagePullPolicy: "IfNotPresent" }],
      restartPolicy: "Always",
      schedulerName: "default-scheduler",
    },
    status: {
      phase: isRunning || state === "crashing" ? "Running" : state === "completed" ? "Succeeded" : "Pending",
      conditions: isScheduled
        ? [condition("PodScheduled", true), condition("Ready", isRunning), condition("ContainersReady", isRunning)]
        : [condition("PodScheduled", false, { reason: "Unschedulable", message: why })],
      ...(isScheduled && {
        containerStatuses: [
          {
            name: "main",
            image,
            imageID: "",
            ready: isRunning,
            started: isRunning,
            restartCount: restarts,
            state: containerState,
            lastState,
          },
        ],
      }),
    },
  });
}

interface DeploymentOptions {
  readonly namespace: string;
  readonly name: string;
  readonly image: string;
  readonly minutes: number;
  /** By node, of the newest revision. */
  readonly pods: readonly (readonly [node: string, state: PodState])[];
  /** Of the revision before. */
  readonly old?: readonly (readonly [node: string, state: PodState])[];
  readonly wanted?: number;
}

function deploymentOf({
  namespace,
  name,
  image,
  minutes,
  pods,
  old = [],
  wanted = pods.length,
}: DeploymentOptions): StoredObject[] {
  const labels = { app: name };
  const template = { metadata: { labels }, spec: { containers: [{ name: "main", image }] } };
  const running = (all: DeploymentOptions["pods"]): number => all.filter(([, state]) => state === "running").length;
  const available = running(pods) + running(old);
  const isStuck = pods.some(([, state]) => state === "no-image" || state === "crashing");
  const deployment = objectOf(
    "deployments",
    "apps/v1",
    "Deployment",
    { namespace, name, minutes, labels },
    {
      spec: { replicas: wanted, selector: { matchLabels: labels }, template },
      status: {
        observedGeneration: 1,
        replicas: pods.length + old.length,
        updatedReplicas: pods.length,
        readyReplicas: available,
        availableReplicas: available,
        unavailableReplicas: pods.length + old.length - available,
        conditions: [
          {
            type: "Progressing",
            status: isStuck ? "False" : "True",
            reason: isStuck ? "ProgressDeadlineExceeded" : "NewReplicaSetAvailable",
            message: isStuck ? `ReplicaSet "${name}" has timed out progressing.` : "",
            lastUpdateTime: ago(2),
            lastTransitionTime: ago(2),
          },
        ],
      },
    },
  );
  const setOf = (members: DeploymentOptions["pods"], revision: string, age: number, setImage: string): StoredObject[] => {
    const hash = suffixOf(`${namespace}/${name}/${revision}`, 9);
    const set = objectOf(
      "replicasets",
      "apps/v1",
      "ReplicaSet",
      { namespace, name: `${name}-${hash}`, minutes: age, owner: deployment.object, labels },
      {
        spec: { replicas: members.length, selector: { matchLabels: labels }, template },
        status: {
          observedGeneration: 1,
          replicas: members.length,
          readyReplicas: running(members),
          availableReplicas: running(members),
        },
      },
    );
    const owned = members.map(([node, state], i) =>
      podOf({
        namespace,
        name: `${name}-${hash}-${suffixOf(`${namespace}/${name}/${revision}/${i}`, 5)}`,
        minutes: Math.max(1, age - (i % 3)),
        owner: set.object,
        labels,
        node,
        state,
        image: setImage,
      }),
    );
    return [set, ...owned];
  };
  return [
    deployment,
    ...setOf(pods, "new", old.length > 0 ? 3 : minutes, image),
    ...(old.length > 0 ? setOf(old, "old", minutes, image.replace(/\d+$/, "0")) : []),
  ];
}

function daemonSetOf(namespace: string, name: string, image: string, nodes: readonly string[]): StoredObject[] {
  const labels = { app: name };
  const template = { metadata: { labels }, spec: { containers: [{ name: "main", image }] } };
  const count = nodes.length;
  const set = objectOf(
    "daemonsets",
    "apps/v1",
    "DaemonSet",
    { namespace, name, minutes: 17_000, labels },
    {
      spec: { selector: { matchLabels: labels }, template },
      status: {
        currentNumberScheduled: count,
        desiredNumberScheduled: count,
        numberMisscheduled: 0,
        numberReady: count,
        numberAvailable: count,
        updatedNumberScheduled: count,
        observedGeneration: 1,
      },
    },
  );
  const pods = nodes.map((node) =>
    podOf({ namespace, name: `${name}-${suffixOf(name + node, 5)}`, minutes: 17_000, owner: set.object, labels, node, image }),
  );
  return [set, ...pods];
}

function statefulSetOf(namespace: string, name: string, image: string, nodes: readonly string[]): StoredObject[] {
  const labels = { app: name };
  const template = { metadata: { labels }, spec: { containers: [{ name: "main", image }] } };
  const set = objectOf(
    "statefulsets",
    "apps/v1",
    "StatefulSet",
    { namespace, name, minutes: 9_000, labels },
    {
      spec: { replicas: nodes.length, serviceName: name, selector: { matchLabels: labels }, template },
      status: { replicas: nodes.length, readyReplicas: nodes.length, currentReplicas: nodes.length, observedGeneration: 1 },
    },
  );
  const pods = nodes.map((node, i) =>
    podOf({ namespace, name: `${name}-${i}`, minutes: 9_000 - i, owner: set.object, labels, node, image }),
  );
  return [set, ...pods];
}

function eventOf(about: KubeObject, minutes: number, type: string, reason: string, message: string, count = 1): StoredObject {
  const { namespace = "default", name = "" } = about.metadata;
  const source =
    reason === "FailedScheduling" ? "default-scheduler" : reason.startsWith("Scaling") ? "deployment-controller" : "kubelet";
  const eventName = `${name}.${digest(name + reason + minutes).slice(0, 16)}`;
  return objectOf(
    "events",
    "v1",
    "Event",
    { namespace, name: eventName, minutes },
    {
      involvedObject: { kind: about.kind, namespace, name, uid: about.metadata.uid, apiVersion: about.apiVersion },
      reason,
      message,
      type,
      count,
      source: { component: source },
      firstTimestamp: ago(minutes + count),
      lastTimestamp: ago(minutes),
    },
  );
}

const workers = ["worker-2", "worker-3", "worker-4", "worker-5", "worker-6"];
const all = ["control-1", ...workers];
/** Spread as a scheduler would, leaving out what is cordoned. */
const spread = (count: number, from = 0, state: PodState = "running"): (readonly [string, PodState])[] =>
  Array.from({ length: count }, (_, i) => [workers[(i * 3 + from) % 4] as string, state] as const);

export function sceneObjects(): StoredObject[] {
  const namespaces = ["billing", "monitoring", "shop"].map((name) =>
    objectOf(
      "namespaces",
      "v1",
      "Namespace",
      { name, minutes: 17_000 },
      { spec: { finalizers: ["kubernetes"] }, status: { phase: "Active" } },
    ),
  );
  const nodes = all.map((name) => nodeOf(name, name === "worker-5" ? "cordoned" : "ready"));
  const workloads = [
    ...daemonSetOf("kube-system", "node-exporter", "registry.example/node-exporter:1.5", all),
    ...daemonSetOf("kube-system", "log-shipper", "registry.example/log-shipper:3.1", all),
    ...deploymentOf({
      namespace: "shop",
      name: "web",
      image: "registry.example/shop/web:5.2",
      minutes: 4_000,
      pods: [...spread(7), ...spread(3, 1, "starting")],
      old: spread(4, 2),
      wanted: 12,
    }),
    ...deploymentOf({
      namespace: "shop",
      name: "cart",
      image: "registry.example/shop/cart:2.4.1",
      minutes: 2_800,
      pods: [["worker-3", "no-image"]],
      old: spread(3, 1),
      wanted: 3,
    }),
    ...deploymentOf({
      namespace: "shop",
      name: "search",
      image: "registry.example/shop/search:1.9",
      minutes: 5_100,
      pods: spread(18, 3),
    }),
    ...deploymentOf({
      namespace: "shop",
      name: "images",
      image: "registry.example/shop/images:3.0",
      minutes: 5_000,
      pods: spread(12, 2),
    }),
    ...deploymentOf({
      namespace: "billing",
      name: "invoices",
      image: "registry.example/billing/invoices:8.7",
      minutes: 1_400,
      pods: spread(10, 1),
    }),
    ...deploymentOf({
      namespace: "billing",
      name: "ledger",
      image: "registry.example/billing/ledger:4.4",
      minutes: 1_200,
      pods: [
        ["worker-4", "crashing"],
        ["worker-2", "crashing"],
      ],
    }),
    ...deploymentOf({
      namespace: "monitoring",
      name: "grafana",
      image: "registry.example/grafana:9.3",
      minutes: 8_000,
      pods: spread(2),
    }),
    ...statefulSetOf("shop", "orders-db", "registry.example/postgres:15", ["worker-2", "worker-3", "worker-4"]),
    ...statefulSetOf("monitoring", "prometheus", "registry.example/prometheus:2.42", ["worker-6", "worker-2"]),
    ...spread(24, 1).map(([node], i) =>
      podOf({
        namespace: "billing",
        name: `report-${2840 + i}-${suffixOf(`report${i}`, 5)}`,
        minutes: 60 * (24 - i),
        node,
        state: "completed",
      }),
    ),
  ];
  const big = podOf({
    namespace: "billing",
    name: "month-end",
    minutes: 26,
    node: "",
    state: "unschedulable",
    image: "registry.example/billing/month-end:1.2",
  });
  const find = (prefix: string): KubeObject =>
    (workloads.find(({ object }) => object.metadata.name?.startsWith(prefix) && object.kind === "Pod") as StoredObject).object;
  const cart = workloads
    .filter(({ object }) => object.kind === "Pod" && object.metadata.name?.startsWith("cart-"))
    .find(({ object }) => (object as { status?: { phase?: string } }).status?.phase === "Pending") as StoredObject;
  const events = [
    eventOf(
      big.object,
      1,
      "Warning",
      "FailedScheduling",
      "0/6 nodes are available: 1 node(s) were unschedulable, 5 Insufficient cpu.",
      14,
    ),
    eventOf(
      cart.object,
      2,
      "Warning",
      "Failed",
      'Failed to pull image "registry.example/shop/cart:2.4.1": rpc error: code = NotFound desc = failed to pull and unpack image: not found',
      5,
    ),
    eventOf(cart.object, 1, "Normal", "BackOff", 'Back-off pulling image "registry.example/shop/cart:2.4.1"', 9),
    eventOf(find("ledger-"), 3, "Warning", "BackOff", "Back-off restarting failed container", 21),
    ...workloads
      .filter(({ object }) => object.kind === "Pod" && /^(?:web|invoices|search)-/.test(object.metadata.name ?? ""))
      .flatMap(({ object }, i) => [
        eventOf(object, 2 + ((i * 7) % 55), "Normal", "Pulled", "Container image already present on machine"),
        eventOf(object, 1 + ((i * 7) % 55), "Normal", "Started", "Started container main"),
      ]),
  ];
  return [...namespaces, ...nodes, ...workloads, big, ...events];
}

/** CustomResourceDefinitions of the group of the metrics API, so that a server without a metrics server has usage to show. */
export const metricsDefinitions = (["nodes", "pods"] as const).map((plural) => ({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: {
    name: `${plural}.metrics.k8s.io`,
    annotations: { "api-approved.kubernetes.io": "unapproved, for a test" },
  },
  spec: {
    group: "metrics.k8s.io",
    scope: plural === "nodes" ? "Cluster" : "Namespaced",
    names: {
      plural,
      singular: plural === "nodes" ? "nodemetrics" : "podmetrics",
      kind: plural === "nodes" ? "NodeMetrics" : "PodMetrics",
    },
    versions: [
      {
        name: "v1beta1",
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
      },
    ],
  },
}));

export function usageObjects(): StoredObject[] {
  const amount = (name: string, from: number, to: number): number =>
    from + (Number.parseInt(digest(name).slice(0, 4), 16) % (to - from));
  const nodes = all.map((name) => {
    const usage = { cpu: `${amount(name, 900, 2900)}m`, memory: `${amount(`${name}m`, 5000, 12_500)}Mi` };
    return objectOf(
      "metrics.k8s.io/nodes",
      "metrics.k8s.io/v1beta1",
      "NodeMetrics",
      { name, minutes: 0 },
      { usage, window: "15s" },
    );
  });
  const pods = sceneObjects()
    .filter(({ object }) => object.kind === "Pod" && (object as { status?: { phase?: string } }).status?.phase === "Running")
    .map(({ object: { metadata } }) => {
      const name = metadata.name as string;
      const usage = { cpu: `${amount(name, 4, 240)}m`, memory: `${amount(`${name}m`, 40, 600)}Mi` };
      return objectOf(
        "metrics.k8s.io/pods",
        "metrics.k8s.io/v1beta1",
        "PodMetrics",
        { namespace: metadata.namespace, name, minutes: 0 },
        { containers: [{ name: "main", usage }], window: "15s" },
      );
    });
  return [...nodes, ...pods];
}
