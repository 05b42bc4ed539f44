/**
 * Starts and stops the API server. It listens first and opens the storage then, so that health says what is missing
 * while etcd is away; the stop goes the other way round.
 */
import { randomUUID } from "node:crypto";
import { type Clock, realClock } from "@coxswain/apimachinery/clock/clock";
import { DecisionLog } from "@coxswain/apimachinery/decisions/decision-log";
import { Turns } from "@coxswain/apimachinery/event-loop/turns";
import type { FeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { metricsOptions } from "@coxswain/apimachinery/flags/metrics";
import type { Logger, RootLogger } from "@coxswain/apimachinery/logging/logger";
import { type MetricsRegistry, newMetricsRegistry } from "@coxswain/apimachinery/metrics/registry";
import { clusterRoleBindings, clusterRoles, roleBindings, roles } from "@coxswain/apimachinery/schema/kinds/resources";
import { type WatchedCertificatePool, watchedCertificatePool } from "@coxswain/apimachinery/serving/authentication/x509";
import type { ExchangeHandler } from "@coxswain/apimachinery/serving/exchange";
import { type ProxyCertificate, watchedKeyPair, watchedProxyCertificate } from "./aggregation/proxy-certificate.ts";
import { type AuthenticationInfo, ensureAuthenticationInfo, followAuthenticationInfo } from "./bootstrap/authentication-info.ts";
import { untilCaughtUp } from "./bootstrap/caught-up.ts";
import { ensureFlowConfiguration, keepFlowConfiguration } from "./bootstrap/flow-configuration.ts";
import {
  collectIdentityLeases,
  type IdentityLeaseOptions,
  keepIdentityLease,
  renewIdentityLease,
} from "./bootstrap/identity-lease.ts";
import {
  ensureKubernetesService,
  type KubernetesServiceLoop,
  type KubernetesServiceOptions,
  type LiveServers,
  runKubernetesService,
} from "./bootstrap/kubernetes-service.ts";
import { newMasterCount } from "./bootstrap/master-count.ts";
import { ensureNamespaces } from "./bootstrap/namespaces.ts";
import { ensurePriorityClasses } from "./bootstrap/priority-classes.ts";
import { ensureRbacPolicy } from "./bootstrap/rbac-policy.ts";
import { newServerLeases, serverLeasesResource } from "./bootstrap/server-leases.ts";
import type { ApiserverConfig } from "./config.ts";
import { newTunnels, type Tunnels } from "./egress/tunnels.ts";
import { Drain, type OpenRequests } from "./filters/lifetime.ts";
import { newObjectCounts } from "./flow-control/object-counts.ts";
import { aggregatorHooks, autoregistrationHook } from "./server/aggregator-hooks.ts";
import { newAuditor } from "./server/audit.ts";
import { customResourceHooks } from "./server/custom-resource-hooks.ts";
import { newEdge } from "./server/edge.ts";
import { firstAddress } from "./server/first-address.ts";
import { newGrpcMetrics } from "./server/grpc-metrics.ts";
import { listen } from "./server/listen.ts";
import { type MemoryBudget, newMemoryBudget } from "./server/memory-budget.ts";
import { newPostStartHooks, type PostStartHook } from "./server/post-start-hooks.ts";
import { connectRooms, type Rooms } from "./server/rooms.ts";
import { issuerDocumentsOf, serviceAccountKeys } from "./server/service-accounts.ts";
import { untilServable, whileStarting } from "./server/start-gate.ts";
import { newStorageMetrics } from "./server/storage-metrics.ts";
import { storageVersionHooks } from "./server/storage-version-barrier.ts";
import { readTracingConfiguration, type TracingConfiguration } from "./server/tracing/configuration.ts";
import { newSpanExporter } from "./server/tracing/exporter.ts";
import { passThrough } from "./server/tracing/pass-through.ts";
import { newTracer, type Tracer } from "./server/tracing/tracer.ts";
import type { EtcdOptions } from "./storage/cluster.ts";
import type { EtcdIdentity } from "./storage/etcd/channel.ts";
import { newEncryptionMetrics } from "./storage/etcd/encryption-metrics.ts";
import { newKmsCheck } from "./storage/etcd/kms-health.ts";
import { openStorage, type StorageSet } from "./storage/open.ts";

export interface ApiserverRuntime {
  readonly log: Logger;
  readonly featureGates: FeatureGates;
  readonly clock?: Clock;
  /** See EtcdOptions.around. */
  readonly aroundEtcd?: EtcdOptions["around"];
}

export interface RunningApiserver {
  /** `https://127.0.0.1:6443` */
  readonly url: string;
  readonly port: number;
  /** Resolves when all rooms are connected and the hooks have run; rejects when that cannot be: the server is of no use. */
  readonly started: Promise<void>;
  /** Resolves when every check of /readyz passes. */
  ready(signal?: AbortSignal): Promise<void>;
  readonly requests: OpenRequests;
  /** Drains and ends; what is still open after the grace is broken off. */
  stop(graceMs?: number): Promise<void>;
}

const storageRetryMs = 1000;
const readyPollMs = 20;
/** What audit events still in a buffer get at least, however short the grace is. */
const leastFlushMs = 2000;

/** @throws Error when the port or a certificate cannot be had; an etcd that is away is waited for. */
export async function startApiserver(config: ApiserverConfig, runtime: ApiserverRuntime): Promise<RunningApiserver> {
  const { flags } = config;
  const { log, clock = realClock } = runtime;
  const tracing = tracingOf(flags, runtime.featureGates);
  const turns = new Turns();
  const metrics = newMetricsRegistry({ processMetrics: true, turns, ...metricsOptions(flags) });
  const memory = newMemoryBudget(metrics);
  const decisions = new DecisionLog({ component: "kube-apiserver", clock, registry: metrics });
  const exporter = tracing && newSpanExporter({ ...tracing, service: tracedService(), clock, log });
  const untraced = runtime.featureGates.enabled("APIServerTracing") ? passThrough : undefined;
  const tracer = exporter ? newTracer(exporter, tracing.samplingRatePerMillion, clock) : untraced;
  const tunnels = newTunnels(config.egress, clock, metrics);
  const auditor = newAuditor(flags, { clock, log, metrics, connect: tunnels.controlplane });
  const stopping = new AbortController();
  const { signal } = stopping;
  const drain = new Drain();
  let authoritiesChanged = (): void => {};
  const poolOf = (path: string): WatchedCertificatePool | undefined =>
    path === "" ? undefined : watchedCertificatePool(path, () => authoritiesChanged(), clock);
  const clientCa = poolOf(flags["client-ca-file"]);
  const requestHeaderCa = poolOf(flags["requestheader-client-ca-file"]);
  const proxyCertificate = watchedProxyCertificate(flags["proxy-client-cert-file"], flags["proxy-client-key-file"], clock, log);
  const [kubeletCert, kubeletKey] = [flags["kubelet-client-certificate"], flags["kubelet-client-key"]];
  const kubeletCertificate = watchedKeyPair("kubelets", kubeletCert, kubeletKey, clock, log);
  const etcdCertificate = watchedKeyPair("etcd", flags["etcd-certfile"], flags["etcd-keyfile"], clock, log);
  const keys = serviceAccountKeys(config);
  const edge = newEdge({
    metrics,
    log,
    clock,
    profiling: flags.profiling && isRoot(log) ? log : undefined,
    resetsMetrics: flags.profiling,
    livezGraceMs: flags["livez-grace-period"],
    documents: issuerDocumentsOf(config, keys, log),
  });

  let storage: StorageSet | undefined;
  let connected = false;
  const checkEtcd = async (): Promise<void> => {
    // Nor is anything ready whose rooms could not be connected: it would answer 503 to all but health.
    if (storage === undefined || !connected) throw new Error("etcd was not reached yet");
    await storage.health();
  };
  edge.addCheck("etcd", checkEtcd, async () => storage?.warning());
  const encryptionMetrics = newEncryptionMetrics(metrics, clock);
  config.encryption?.countIn(encryptionMetrics);
  for (const [i, { name, service }] of (config.encryption?.kms ?? []).entries()) {
    edge.addCheck(`kms-provider-${i}`, newKmsCheck(name, service, clock));
  }
  const traced = (handler: ExchangeHandler): ExchangeHandler => tracer?.requests(handler) ?? handler;
  const starting = whileStarting(edge, { anonymousAuth: flags["anonymous-auth"] });
  const server = await listen(config, traced(starting), log, metrics, turns);
  let isOpen = false;
  log.info("Serving securely", { address: `${flags["bind-address"]}:${server.port}` });

  let kubernetesService: KubernetesServiceLoop | undefined;
  const start = async (): Promise<void> => {
    const objectCounts = newObjectCounts(clock, flags["etcd-count-metric-poll-period"]);
    storage = await openWithRetry(
      config,
      { clock, log, metrics, turns, memory, signal },
      runtime.aroundEtcd,
      objectCounts.set,
      tracer,
      tunnels,
      etcdCertificate,
    );
    const featureEnabled = (gate: string): boolean => runtime.featureGates.enabled(gate);
    const rooms = connectRooms({
      config,
      storage,
      featureEnabled,
      keys,
      clientCa,
      requestHeaderCa,
      proxyCertificate,
      kubeletCertificate,
      self: () => ({ host: ownHost(flags["bind-address"]), port: server.port }),
      edge,
      tunnels,
      fairness: flags["enable-priority-and-fairness"] && featureEnabled("APIPriorityAndFairness"),
      objectCounts,
      drain,
      auditor,
      decisions,
      clock,
      log,
      metrics,
      turns,
      memory,
      signal,
    });
    const service: KubernetesServiceOptions = {
      client: rooms.client,
      servers: liveServers(flags, storage),
      advertiseAddress: config.advertiseAddress,
      securePort: server.port,
      clusterIp: firstAddress(config.serviceClusterIpRange[0] as string),
      nodePort: flags["kubernetes-service-node-port"],
      clock,
      log,
    };
    const info = (): AuthenticationInfo => authenticationInfo(config, clientCa, requestHeaderCa);
    const identity: IdentityLeaseOptions | undefined = featureEnabled("APIServerIdentity")
      ? {
          client: rooms.client,
          identity: `kube-apiserver-${randomUUID()}`,
          durationSeconds: flags["identity-lease-duration-seconds"],
          renewIntervalSeconds: flags["identity-lease-renew-interval-seconds"],
          clock,
          log,
        }
      : undefined;
    const hooks = hooksOf(config, rooms, service, info(), identity, featureEnabled, clock, log);
    const running = newPostStartHooks(hooks, clock, log);
    const unregistered = (): readonly string[] => rooms.aggregator.autoregistration.missing();
    for (const { name } of hooks) {
      edge.addHook(`poststarthook/${name}`, () => running.problem(name));
      if (name !== autoregistrationHook) continue;
      edge.addHook("autoregister-completion", () => {
        const missing = unregistered();
        return missing.length === 0 ? undefined : `missing APIService: [${missing.join(" ")}]`;
      });
    }
    edge.addReadyCheck("informer-sync", async () => {
      // Who was told that the server is ready must not be sent away.
      if (!rooms.synced() || !isOpen) throw new Error("informers are not synced yet");
    });
    rooms.informers.start(signal);
    connected = true;
    const hooksDone = running.run(signal);
    hooksDone.catch(() => {}); // awaited below, or the server has stopped
    await untilServable({
      missing: () => [...running.unfinished(), ...(rooms.synced() ? [] : ["informer-sync"]), ...unregistered()],
      failingMs: running.failingMs,
      clock,
      log,
      signal,
    });
    server.handleWith(traced(rooms.serve));
    isOpen = true;
    await hooksDone;
    authoritiesChanged = followAuthenticationInfo({ client: rooms.client, info, clock, log, signal });
    if (identity !== undefined) keepIdentityLease(identity, signal);
    void rooms.repair.run(signal).catch(() => {}); // ends with the server
    kubernetesService = runKubernetesService(service);
    await kubernetesService.begun;
  };
  const started = start();
  started.catch((err: unknown) => {
    if (!signal.aborted) log.error("the start failed", err);
  });

  return {
    url: `https://${flags["bind-address"] === "0.0.0.0" ? "127.0.0.1" : flags["bind-address"]}:${server.port}`,
    port: server.port,
    started,
    requests: drain,
    async ready(wanted) {
      await (wanted === undefined ? started : Promise.race([started, aborted(wanted)]));
      while ((await edge.failedChecks()).length > 0) await clock.sleep(readyPollMs, wanted);
    },
    async stop(graceMs = flags["request-timeout"]) {
      edge.shutDown();
      await kubernetesService?.stop();
      if (flags["shutdown-delay-duration"] > 0) await clock.sleep(flags["shutdown-delay-duration"]);
      if (flags["shutdown-send-retry-after"]) {
        // Whoever comes is told to go elsewhere, which takes a server that listens.
        drain.sendRetryAfter = true;
        await drain.end(graceMs, clock);
        await server.close(Math.min(graceMs, lastAnswersMs));
      } else {
        // Listens no more; open connections are told to end.
        const closed = server.close(graceMs);
        await drain.end(graceMs, clock);
        await closed;
      }
      await auditor?.backend.stop(AbortSignal.timeout(Math.max(graceMs, leastFlushMs)));
      stopping.abort(new Error("the server has stopped"));
      await started.catch(() => {});
      storage?.stop();
      await exporter?.close();
      clientCa?.close();
      requestHeaderCa?.close();
      for (const certificate of [proxyCertificate, kubeletCertificate, etcdCertificate]) certificate.close();
    },
  };
}

/** For answers that are being sent when nothing is under way any more. Source: genericapiserver.go ShutdownTimeout */
const lastAnswersMs = 2_000;

/** @returns undefined when nothing is traced @throws Error for the flag without its gate, and for what the file says */
function tracingOf(flags: ApiserverConfig["flags"], featureGates: FeatureGates): TracingConfiguration | undefined {
  const file = flags["tracing-config-file"];
  if (file === "") return undefined;
  if (featureGates.enabled("APIServerTracing")) return readTracingConfiguration(file);
  throw new Error("APIServerTracing feature is not enabled, but tracing config file was provided");
}

/** Who has made the spans. */
const tracedService = (): Record<string, string> => ({
  "service.name": "apiserver",
  "service.instance.id": `kube-apiserver-${randomUUID()}`,
});

/** @returns undefined when somebody else writes the endpoints of the service `kubernetes` */
function liveServers(flags: ApiserverConfig["flags"], storage: StorageSet): LiveServers | undefined {
  switch (flags["endpoint-reconciler-type"]) {
    case "none":
      return undefined;
    case "master-count":
      return newMasterCount(flags["apiserver-count"]);
    default:
      return newServerLeases(storage.for(serverLeasesResource));
  }
}

function isRoot(log: Logger): log is RootLogger {
  return "setVerbosity" in log;
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

/** An address of this machine that the server listens on. */
function ownHost(bindAddress: string): string {
  if (bindAddress === "0.0.0.0") return "127.0.0.1";
  return bindAddress === "::" ? "::1" : bindAddress;
}

interface Common {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
  readonly turns: Turns;
  readonly memory: MemoryBudget;
  readonly signal: AbortSignal;
}

function identityOf({ current }: ProxyCertificate, certFile: string): EtcdIdentity | undefined {
  return current && { cert: Buffer.from(current.cert), key: Buffer.from(current.key), certFile };
}

async function openWithRetry(
  config: ApiserverConfig,
  { clock, log, metrics, turns, memory, signal }: Common,
  around: EtcdOptions["around"],
  counted: (resource: string, count: number) => void,
  tracer: Tracer | undefined,
  tunnels: Tunnels,
  certificate: ProxyCertificate,
): Promise<StorageSet> {
  const { flags } = config;
  const calls = newGrpcMetrics(metrics);
  const stopped = aborted(signal);
  stopped.catch(() => {});
  for (;;) {
    signal.throwIfAborted();
    const opening = openStorage({
      etcd: {
        servers: flags["etcd-servers"],
        overrides: config.etcdOverrides,
        prefix: flags["etcd-prefix"],
        ...config.etcdTls,
        identity: () => identityOf(certificate, flags["etcd-certfile"]),
        compactionIntervalMs: flags["etcd-compaction-interval"],
        healthTimeoutMs: flags["etcd-healthcheck-timeout"],
        leaseReuseSeconds: flags["lease-reuse-duration-seconds"],
        around,
        calls: tracer?.calls(calls) ?? calls,
        connect: tunnels.etcd,
      },
      watchCache: flags["watch-cache"],
      cachedWhenNamed: flags["default-watch-cache-size"] === 0,
      watchCacheSizes: config.watchCacheSizes,
      mediaType: flags["storage-media-type"],
      ...(config.encryption !== undefined && { transformerFor: config.encryption.transformerFor }),
      clock,
      log: log.named("storage"),
      metrics: newStorageMetrics(metrics, counted),
      turns,
      memory,
      countPollMs: flags["etcd-count-metric-poll-period"],
      databaseSizePollMs: flags["etcd-db-metric-poll-interval"],
    });
    try {
      return await Promise.race([opening, stopped]);
    } catch (err) {
      if (signal.aborted) void opening.then((late) => late.stop()).catch(() => {});
      signal.throwIfAborted();
      log.error("cannot reach etcd, trying again", err, { servers: flags["etcd-servers"].join(",") });
      await clock.sleep(storageRetryMs, signal);
    }
  }
}

/** In the order in which health names them. What is for a group that --runtime-config takes away is left out. */
function hooksOf(
  config: ApiserverConfig,
  rooms: Rooms,
  service: KubernetesServiceOptions,
  info: AuthenticationInfo,
  identity: IdentityLeaseOptions | undefined,
  featureEnabled: (gate: string) => boolean,
  clock: Clock,
  log: Logger,
): PostStartHook[] {
  const { client, informers, customResources } = rooms;
  const serves = (group: string, version: string, resource: string): boolean => config.served(group, version, resource, true);
  const hooks: (PostStartHook | false)[] = [
    { name: "start-kube-apiserver-admission-initializer", run: (signal) => informers.waitForSync(signal) },
    { name: "generic-apiserver-start-informers", run: (signal) => informers.waitForSync(signal) },
    ...loadLimitHooks(rooms),
    ...(customResources === undefined ? [] : customResourceHooks(customResources, log)),
    {
      name: "bootstrap-controller",
      async run(signal) {
        await ensureNamespaces(client, signal);
        await rooms.repair.runOnce();
        await ensureKubernetesService(service, signal);
      },
    },
    config.authorizationModes.includes("RBAC") &&
      serves("rbac.authorization.k8s.io", "v1", "clusterroles") && {
        name: "rbac/bootstrap-roles",
        async run(signal) {
          await ensureNamespaces(client, signal);
          await ensureRbacPolicy(client, featureEnabled, signal);
          await untilCaughtUp(client, informers, [clusterRoles, clusterRoleBindings, roles, roleBindings], clock, signal);
        },
      },
    serves("scheduling.k8s.io", "v1", "priorityclasses") && {
      name: "scheduling/bootstrap-system-priority-classes",
      run: (signal) => ensurePriorityClasses(client, signal),
    },
    serves("flowcontrol.apiserver.k8s.io", "v1beta2", "flowschemas") && {
      name: "priority-and-fairness-config-producer",
      async run(signal) {
        await ensureFlowConfiguration(client, signal);
        keepFlowConfiguration(client, clock, log, signal);
      },
    },
    {
      name: "start-cluster-authentication-info-controller",
      async run(signal) {
        await ensureNamespaces(client, signal);
        await ensureAuthenticationInfo(client, info, signal);
      },
    },
    identity !== undefined && {
      name: "start-kube-apiserver-identity-lease-controller",
      async run(signal) {
        await ensureNamespaces(client, signal);
        await renewIdentityLease(identity, signal);
      },
    },
    identity !== undefined && {
      name: "start-kube-apiserver-identity-lease-garbage-collector",
      run: (signal) => collectIdentityLeases(identity, signal),
    },
    ...storageVersionHooks(rooms.storageVersions, identity),
    ...aggregatorHooks({
      aggregator: rooms.aggregator,
      followsCertificate: config.flags["proxy-client-cert-file"] !== "" && config.flags["proxy-client-key-file"] !== "",
      customResourcesKnown: async (signal) => customResources?.waitForSync(signal),
      log,
    }),
  ];
  return hooks.filter((hook) => hook !== false);
}

/** Source: k8s.io/apiserver pkg/server/config.go */
function loadLimitHooks({ loadLimit: { follow } }: Rooms): PostStartHook[] {
  const nothing = async (): Promise<void> => {};
  if (follow === undefined) return [{ name: "max-in-flight-filter", run: nothing }];
  return [
    { name: "priority-and-fairness-config-consumer", run: async (signal) => follow(signal) },
    { name: "priority-and-fairness-filter", run: nothing },
  ];
}

function authenticationInfo(
  { flags }: ApiserverConfig,
  clientCa: WatchedCertificatePool | undefined,
  requestHeaderCa: WatchedCertificatePool | undefined,
): AuthenticationInfo {
  return {
    clientCa: clientCa?.pem,
    requestHeader:
      requestHeaderCa === undefined
        ? undefined
        : {
            ca: requestHeaderCa.pem,
            allowedNames: flags["requestheader-allowed-names"],
            usernameHeaders: flags["requestheader-username-headers"],
            groupHeaders: flags["requestheader-group-headers"],
            extraHeaderPrefixes: flags["requestheader-extra-headers-prefix"],
          },
  };
}
