import { generateKeyPairSync } from "node:crypto";
import { newFeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { parseFlags } from "@coxswain/apimachinery/flags/flags";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import type { ExchangeHandler } from "@coxswain/apimachinery/serving/exchange";
import { ensureNamespaces } from "@coxswain/apiserver/bootstrap/namespaces";
import { ensurePriorityClasses } from "@coxswain/apiserver/bootstrap/priority-classes";
import { type ApiserverConfig, configFromFlags } from "@coxswain/apiserver/config";
import { Drain } from "@coxswain/apiserver/filters/lifetime";
import { kubeApiserver } from "@coxswain/apiserver/flags";
import { newObjectCounts } from "@coxswain/apiserver/flow-control/object-counts";
import { Edge } from "@coxswain/apiserver/server/edge";
import { newMemoryBudget } from "@coxswain/apiserver/server/memory-budget";
import { connectModules } from "@coxswain/apiserver/server/modules";
import { openStorage, type StorageOptions } from "@coxswain/apiserver/storage/open";
import { type EtcdNetwork, newSimulatedEtcdClient } from "@coxswain/testing/store/etcd-client";
import type { MemoryEtcd } from "@coxswain/testing/store/memory-etcd";
import type { SimulatedProcess } from "@coxswain/testing/time/time-line";
import type { World } from "../world/world.ts";
import { temporaryFiles } from "./temporary-files.ts";

/** An API server from the filters to the watch caches, over the in-memory etcd: everything of the real one except sockets and certificates. */
export interface SimulatedApiServer {
  readonly process: SimulatedProcess;
  readonly serve: ExchangeHandler;
  /** Breaks the watches of its caches on etcd. */
  breakWatches(): void;
  crash(): void;
}

export const adminToken = "admin-token";

/** Versions served only for plans that name them: each resource costs a watch cache in each server, and an informer in the garbage collector. */
const optional = [
  "autoscaling/v1",
  "autoscaling/v2",
  "autoscaling/v2beta1",
  "autoscaling/v2beta2",
  "batch/v1beta1",
  "certificates.k8s.io/v1",
  "discovery.k8s.io/v1beta1",
  "events.k8s.io/v1beta1",
  "flowcontrol.apiserver.k8s.io/v1beta1",
  "node.k8s.io/v1beta1",
];
/** The optional versions of small clusters, which have no scheduler that reads them. */
const optionalInSmall = [
  ...optional,
  "admissionregistration.k8s.io/v1",
  "discovery.k8s.io/v1",
  "events.k8s.io/v1",
  "flowcontrol.apiserver.k8s.io/v1beta2",
  "networking.k8s.io/v1",
  "node.k8s.io/v1",
  "policy/v1",
  "policy/v1beta1",
  "scheduling.k8s.io/v1",
  "storage.k8s.io/v1",
  "storage.k8s.io/v1beta1",
];
/** Resources with a watch cache in small clusters; the others are served from etcd. */
const cachedInSmall = [
  ...["namespaces", "nodes", "pods", "services", "endpoints", "configmaps", "resourcequotas", "limitranges", "secrets"],
  ...[
    "persistentvolumeclaims",
    "persistentvolumes",
    "serviceaccounts",
    "leases.coordination.k8s.io",
    "jobs.batch",
    "cronjobs.batch",
  ],
  ...["deployments.apps", "replicasets.apps", "daemonsets.apps", "statefulsets.apps", "controllerrevisions.apps"],
  ...["roles", "rolebindings", "clusterroles", "clusterrolebindings"].map((resource) => `${resource}.rbac.authorization.k8s.io`),
  ...["apiservices.apiregistration.k8s.io", "customresourcedefinitions.apiextensions.k8s.io", "replicationcontrollers"],
];
/** Resources of optional versions that have a watch cache when their version is served. */
const cachedOf: Readonly<Record<string, readonly string[]>> = {
  "autoscaling/v2": ["horizontalpodautoscalers.autoscaling"],
  "certificates.k8s.io/v1": ["certificatesigningrequests.certificates.k8s.io"],
  "discovery.k8s.io/v1": ["endpointslices.discovery.k8s.io"],
  "policy/v1": ["poddisruptionbudgets.policy"],
  "storage.k8s.io/v1": ["storageclasses", "volumeattachments", "csinodes", "csidrivers"].map((name) => `${name}.storage.k8s.io`),
};
const cachesOf = ({ needed, isSmall }: ApiChoice): Pick<StorageOptions, "cachedWhenNamed" | "watchCacheSizes"> => {
  if (!isSmall) return {};
  const cached = [...cachedInSmall, ...needed.flatMap((version) => cachedOf[version] ?? [])];
  return { cachedWhenNamed: true, watchCacheSizes: new Map(cached.map((name) => [name, 100])) };
};
/** Admission plugins that read resources of a version; disabled when the version is not served. */
const readers: Readonly<Record<string, readonly string[]>> = {
  "admissionregistration.k8s.io/v1": ["MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"],
  "networking.k8s.io/v1": ["DefaultIngressClass"],
  "node.k8s.io/v1": ["RuntimeClass"],
  "scheduling.k8s.io/v1": ["Priority"],
  "storage.k8s.io/v1": ["DefaultStorageClass", "PersistentVolumeClaimResize"],
};

/** Selects the API versions that servers serve. */
export interface ApiChoice {
  /** The optional versions to serve. */
  readonly needed: readonly string[];
  readonly isSmall: boolean;
}

let files: Readonly<Record<"tokens.csv" | "sa.key", string>> | undefined;
const configs = new Map<string, ApiserverConfig>();

const config = ({ needed, isSmall }: ApiChoice): ApiserverConfig =>
  configs.getOrInsertComputed(JSON.stringify([needed, isSmall]), () => {
    files ??= temporaryFiles({
      "tokens.csv": `${adminToken},admin,admin-uid,"system:masters"\n`,
      // Each start of a server reads it: a key of an elliptic curve costs a tenth of an RSA key.
      "sa.key": generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({ type: "sec1", format: "pem" }),
    });
    const absent = (isSmall ? optionalInSmall : optional).filter((version) => !needed.includes(version));
    const withoutReaders = ["ServiceAccount", ...absent.flatMap((version) => readers[version] ?? [])];
    const { values } = parseFlags(kubeApiserver.flags, [
      "--etcd-servers=http://etcd:2379",
      "--advertise-address=192.0.2.10",
      `--token-auth-file=${files["tokens.csv"]}`,
      "--service-account-issuer=https://kubernetes.default.svc",
      `--service-account-key-file=${files["sa.key"]}`,
      `--service-account-signing-key-file=${files["sa.key"]}`,
      "--authorization-mode=AlwaysAllow",
      "--anonymous-auth=false",
      "--service-cluster-ip-range=10.0.0.0/24",
      `--disable-admission-plugins=${withoutReaders.join(",")}`,
      "--storage-media-type=application/json",
      "--etcd-compaction-interval=0",
      "--etcd-count-metric-poll-period=0",
      "--etcd-db-metric-poll-interval=0",
      "--enable-priority-and-fairness=false",
      `--runtime-config=${absent.map((version) => `${version}=false`).join(",")}`,
    ]);
    return { ...configFromFlags(values), flags: values };
  });

interface ApiServerOptions {
  readonly world: World;
  readonly process: SimulatedProcess;
  readonly etcd: MemoryEtcd;
  readonly network: EtcdNetwork;
  readonly apis: ApiChoice;
  readonly log: Logger;
  /** Writes the initial objects of a cluster; for the first server with an empty etcd. */
  readonly bootstrap?: boolean;
}

/** Resolves when the server is ready. */
export async function startSimulatedApiServer(options: ApiServerOptions): Promise<SimulatedApiServer> {
  const { world, process, etcd, network, apis, log } = options;
  const { clock } = process;
  const stopping = new AbortController();
  const { signal } = stopping;
  const client = newSimulatedEtcdClient(world, etcd, network, process);
  const featureGates = newFeatureGates(kubeApiserver.name, {});
  const metrics = newMetricsRegistry();
  const turns = new Turns();
  const memory = newMemoryBudget(metrics);
  const storage = await openStorage({
    etcd: { servers: ["http://etcd:2379"], compactionIntervalMs: 0, around: () => client },
    mediaType: "application/json",
    turns,
    memory,
    clock,
    log,
    ...cachesOf(apis),
  });
  const none = { current: undefined, close() {} };
  const modules = connectModules({
    config: config(apis),
    storage,
    featureEnabled: (gate) => featureGates.enabled(gate),
    keys: [],
    certificates: { clientCa: undefined, requestHeaderCa: undefined, proxy: none, kubelet: none },
    self: () => ({ host: "127.0.0.1", port: 6443 }),
    edge: new Edge({ metrics, log, clock, profiling: undefined, livezGraceMs: 0, documents: undefined }),
    tunnels: {},
    fairness: false,
    objectCounts: newObjectCounts(clock, 0),
    drain: new Drain(),
    auditor: undefined,
    clock,
    log,
    metrics,
    turns,
    memory,
    signal,
  });
  modules.informers.start(signal);
  await modules.informers.waitForSync(signal);
  if (options.bootstrap) {
    await ensureNamespaces(modules.client, signal);
    await ensurePriorityClasses(modules.client, signal);
    await modules.repair.runOnce();
    const { aggregator } = modules;
    void aggregator.checkAvailability(signal);
    void aggregator.autoregistration.run(Promise.resolve(), signal);
    while (aggregator.autoregistration.missing().length > 0) await clock.sleep(100);
  }
  while (!modules.synced()) await clock.sleep(10);
  return {
    process,
    serve: modules.serve,
    breakWatches: () => client.breakWatches(),
    crash() {
      process.crash();
      client.breakWatches();
      stopping.abort(new Error("the server has crashed"));
      storage.stop();
    },
  };
}
