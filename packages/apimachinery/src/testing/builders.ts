import type { ObjectMeta, OwnerReference } from "../objects/meta/types.ts";
import type { DaemonSet, Deployment, ReplicaSet, StatefulSet } from "../objects/schema/kinds/apps/v1.ts";
import type {
  Endpoints,
  Namespace,
  Node,
  NodeCondition,
  Pod,
  PodSpec,
  PodStatus,
  Service,
  ServiceAccount,
  Taint,
} from "../objects/schema/kinds/core/v1.ts";

/** Builders of minimal valid objects, as a server would return them; tests pass only the properties that matter. */
interface MetaOptions {
  name?: string;
  namespace?: string;
  uid?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
  owner?: Pick<ReplicaSet, "apiVersion" | "kind" | "metadata">;
  ownerReferences?: OwnerReference[];
  createdAt?: string;
  deletedAt?: string;
  generation?: number;
}

const epoch = "2024-01-01T00:00:00Z";

function metaOf(options: MetaOptions, name: string, namespace: string | undefined): ObjectMeta {
  const own = options.name ?? name;
  const meta: ObjectMeta = { name: own, uid: options.uid ?? `${own}-uid`, creationTimestamp: options.createdAt ?? epoch };
  const where = options.namespace ?? namespace;
  if (where !== undefined) meta.namespace = where;
  if (options.labels !== undefined) meta.labels = options.labels;
  if (options.annotations !== undefined) meta.annotations = options.annotations;
  if (options.finalizers !== undefined) meta.finalizers = options.finalizers;
  if (options.deletedAt !== undefined) meta.deletionTimestamp = options.deletedAt;
  if (options.generation !== undefined) meta.generation = options.generation;
  const owners = [
    ...(options.ownerReferences ?? []),
    ...(options.owner === undefined ? [] : [controllerReference(options.owner)]),
  ];
  if (owners.length > 0) meta.ownerReferences = owners;
  return meta;
}

function controllerReference({ apiVersion, kind, metadata }: NonNullable<MetaOptions["owner"]>): OwnerReference {
  return {
    apiVersion: apiVersion ?? "",
    kind: kind ?? "",
    name: metadata.name ?? "",
    uid: metadata.uid ?? "",
    controller: true,
    blockOwnerDeletion: true,
  };
}

export interface PodOptions extends MetaOptions {
  phase?: string;
  ready?: boolean;
  /** Last transition of the Ready condition, RFC 3339. */
  readySince?: string;
  nodeName?: string;
  podIP?: string;
  restarts?: number;
  spec?: Partial<PodSpec>;
  status?: Partial<PodStatus>;
}

export function aPod(options: PodOptions = {}): Pod {
  const { phase = "Running", ready = phase === "Running", readySince = epoch, nodeName, podIP, restarts, spec, status } = options;
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: metaOf(options, "pod", "default"),
    spec: {
      containers: [{ name: "main", image: "busybox" }],
      ...(nodeName === undefined ? {} : { nodeName }),
      ...spec,
    },
    status: {
      phase,
      conditions: [{ type: "Ready", status: ready ? "True" : "False", lastTransitionTime: readySince }],
      ...(podIP === undefined ? {} : { podIP, podIPs: [{ ip: podIP }] }),
      ...(restarts === undefined
        ? {}
        : { containerStatuses: [{ name: "main", ready, restartCount: restarts, image: "busybox", imageID: "" }] }),
      ...status,
    },
  };
}

export function aNode(options: MetaOptions & { ready?: boolean; taints?: Taint[]; podCIDR?: string } = {}): Node {
  const { ready = true, taints, podCIDR } = options;
  const status = ready ? "True" : "False";
  const conditions: NodeCondition[] = [{ type: "Ready", status, lastHeartbeatTime: epoch, lastTransitionTime: epoch }];
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: metaOf(options, "node", undefined),
    spec: { ...(taints === undefined ? {} : { taints }), ...(podCIDR === undefined ? {} : { podCIDR, podCIDRs: [podCIDR] }) },
    status: {
      conditions,
      allocatable: { cpu: "4", memory: "8Gi", pods: "110" },
      capacity: { cpu: "4", memory: "8Gi", pods: "110" },
    },
  };
}

export function aNamespace(options: MetaOptions & { phase?: string } = {}): Namespace {
  const { phase = options.deletedAt === undefined ? "Active" : "Terminating" } = options;
  return {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: metaOf(options, "default", undefined),
    spec: { finalizers: ["kubernetes"] },
    status: { phase },
  };
}

export function aReplicaSet(
  options: MetaOptions & { replicas?: number; app?: string; minReadySeconds?: number; template?: Partial<PodSpec> } = {},
): ReplicaSet {
  const { replicas = 1, app = "web", minReadySeconds, template } = options;
  return {
    apiVersion: "apps/v1",
    kind: "ReplicaSet",
    metadata: metaOf({ labels: { app }, ...options }, app, "default"),
    spec: {
      replicas,
      ...(minReadySeconds === undefined ? {} : { minReadySeconds }),
      selector: { matchLabels: { app } },
      template: { metadata: { labels: { app } }, spec: { containers: [{ name: "main", image: "busybox" }], ...template } },
    },
    status: { replicas: 0 },
  };
}

export function aDeployment(
  options: MetaOptions & { replicas?: number; app?: string; image?: string; spec?: Partial<Deployment["spec"]> } = {},
): Deployment {
  const { replicas = 1, app = "web", image = "busybox", spec } = options;
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: metaOf({ labels: { app }, generation: 1, ...options }, app, "default"),
    spec: {
      replicas,
      selector: { matchLabels: { app } },
      template: { metadata: { labels: { app } }, spec: { containers: [{ name: "main", image }] } },
      strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: "25%", maxUnavailable: "25%" } },
      revisionHistoryLimit: 10,
      progressDeadlineSeconds: 600,
      ...spec,
    },
    status: {},
  };
}

export function aDaemonSet(
  options: MetaOptions & { app?: string; image?: string; spec?: Partial<DaemonSet["spec"]>; template?: Partial<PodSpec> } = {},
): DaemonSet {
  const { app = "agent", image = "busybox", spec, template } = options;
  return {
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata: metaOf({ labels: { app }, generation: 1, ...options }, app, "default"),
    spec: {
      selector: { matchLabels: { app } },
      template: { metadata: { labels: { app } }, spec: { containers: [{ name: "main", image }], ...template } },
      updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } },
      revisionHistoryLimit: 10,
      ...spec,
    },
    status: { currentNumberScheduled: 0, numberMisscheduled: 0, desiredNumberScheduled: 0, numberReady: 0 },
  };
}

export function aStatefulSet(
  options: MetaOptions & { replicas?: number; app?: string; image?: string; spec?: Partial<StatefulSet["spec"]> } = {},
): StatefulSet {
  const { replicas = 1, app = "db", image = "busybox", spec } = options;
  return {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: metaOf({ labels: { app }, generation: 1, ...options }, app, "default"),
    spec: {
      replicas,
      serviceName: app,
      selector: { matchLabels: { app } },
      template: { metadata: { labels: { app } }, spec: { containers: [{ name: "main", image }] } },
      podManagementPolicy: "OrderedReady",
      updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 0 } },
      revisionHistoryLimit: 10,
      ...spec,
    },
    status: { replicas: 0, availableReplicas: 0 },
  };
}

export function aService(options: MetaOptions & { spec?: Partial<Service["spec"]> } = {}): Service {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: metaOf(options, "web", "default"),
    spec: {
      type: "ClusterIP",
      clusterIP: "10.0.0.10",
      clusterIPs: ["10.0.0.10"],
      ipFamilies: ["IPv4"],
      ipFamilyPolicy: "SingleStack",
      selector: { app: "web" },
      ports: [{ name: "http", port: 80, targetPort: 8080, protocol: "TCP" }],
      ...options.spec,
    },
    status: {},
  };
}

/** Endpoints with the given subsets, none by default. */
export function someEndpoints(options: MetaOptions & { subsets?: Endpoints["subsets"] } = {}): Endpoints {
  return {
    apiVersion: "v1",
    kind: "Endpoints",
    metadata: metaOf(options, "web", "default"),
    ...(options.subsets === undefined ? {} : { subsets: options.subsets }),
  };
}

export function aServiceAccount(options: MetaOptions = {}): ServiceAccount {
  return { apiVersion: "v1", kind: "ServiceAccount", metadata: metaOf(options, "default", "default") };
}
