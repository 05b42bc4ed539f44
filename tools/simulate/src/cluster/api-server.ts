import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Turns } from "@coxswain/apimachinery/event-loop/turns";
import { newFeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { parseFlags } from "@coxswain/apimachinery/flags/flags";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/metrics/registry";
import { newServiceAccountKey } from "@coxswain/apimachinery/serving/certificates";
import type { ExchangeHandler } from "@coxswain/apimachinery/serving/exchange";
import { ensureNamespaces } from "@coxswain/apiserver/bootstrap/namespaces";
import { ensurePriorityClasses } from "@coxswain/apiserver/bootstrap/priority-classes";
import { type ApiserverConfig, configFromFlags } from "@coxswain/apiserver/config";
import { Drain } from "@coxswain/apiserver/filters/lifetime";
import { kubeApiserver } from "@coxswain/apiserver/flags";
import { newObjectCounts } from "@coxswain/apiserver/flow-control/object-counts";
import { newEdge } from "@coxswain/apiserver/server/edge";
import { newMemoryBudget } from "@coxswain/apiserver/server/memory-budget";
import { connectModules } from "@coxswain/apiserver/server/modules";
import { openStorage } from "@coxswain/apiserver/storage/open";
import { type EtcdNetwork, newSimulatedEtcdClient } from "@coxswain/testing/store/etcd-client";
import type { MemoryEtcd } from "@coxswain/testing/store/memory-etcd";
import type { SimulatedProcess } from "@coxswain/testing/time/time-line";
import type { World } from "../world/world.ts";

/** An API server from the filters to the watch caches, over the etcd in memory: everything of the real one but sockets and certificates. */
export interface SimulatedApiServer {
  readonly process: SimulatedProcess;
  readonly serve: ExchangeHandler;
  /** Its caches lose their watches on etcd. */
  breakWatches(): void;
  crash(): void;
}

export const adminToken = "admin-token";

/** Versions that no plan needs. */
const unused = [
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

let shared: ApiserverConfig | undefined;

function config(): ApiserverConfig {
  if (shared !== undefined) return shared;
  const folder = mkdtempSync(join(tmpdir(), "cox-simulate-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const tokens = join(folder, "tokens.csv");
  writeFileSync(tokens, `${adminToken},admin,admin-uid,"system:masters"\n`, { mode: 0o600 });
  const key = join(folder, "sa.key");
  writeFileSync(key, newServiceAccountKey().keyPem, { mode: 0o600 });
  const { values } = parseFlags(kubeApiserver.flags, [
    "--etcd-servers=http://etcd:2379",
    "--advertise-address=192.0.2.10",
    `--token-auth-file=${tokens}`,
    "--service-account-issuer=https://kubernetes.default.svc",
    `--service-account-key-file=${key}`,
    `--service-account-signing-key-file=${key}`,
    "--authorization-mode=AlwaysAllow",
    "--anonymous-auth=false",
    "--service-cluster-ip-range=10.0.0.0/24",
    "--disable-admission-plugins=ServiceAccount",
    "--storage-media-type=application/json",
    "--etcd-compaction-interval=0",
    "--etcd-count-metric-poll-period=0",
    "--etcd-db-metric-poll-interval=0",
    "--enable-priority-and-fairness=false",
    // Every group costs caches, and informers of the garbage collector.
    `--runtime-config=${unused.map((version) => `${version}=false`).join(",")}`,
  ]);
  shared = { ...configFromFlags(values), flags: values };
  return shared;
}

export interface ApiServerOptions {
  readonly world: World;
  readonly process: SimulatedProcess;
  readonly etcd: MemoryEtcd;
  readonly network: EtcdNetwork;
  readonly log: Logger;
  /** Writes what every cluster has first, for the first server over an empty etcd. */
  readonly bootstrap?: boolean;
}

/** Resolves when it serves. */
export async function startSimulatedApiServer(options: ApiServerOptions): Promise<SimulatedApiServer> {
  const { world, process, etcd, network, log } = options;
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
  });
  const none = { current: undefined, close() {} };
  const modules = connectModules({
    config: config(),
    storage,
    featureEnabled: (gate) => featureGates.enabled(gate),
    keys: [],
    certificates: { clientCa: undefined, requestHeaderCa: undefined, proxy: none, kubelet: none },
    self: () => ({ host: "127.0.0.1", port: 6443 }),
    edge: newEdge({ metrics, log, clock, profiling: undefined, livezGraceMs: 0, documents: undefined }),
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
