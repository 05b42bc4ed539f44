import { mkdir, readFile } from "node:fs/promises";
import { isIPv6 } from "node:net";
import { join } from "node:path";
import type { Client } from "@coxswain/apimachinery/client/client";
import { newClient } from "@coxswain/apimachinery/client/client";
import { type ClientConfig, userAgentOf } from "@coxswain/apimachinery/client/config";
import { clientMetrics } from "@coxswain/apimachinery/client/metrics";
import type { Clock } from "@coxswain/apimachinery/clock/clock";
import { type EventRecorder, newEventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import { isNotFound } from "@coxswain/apimachinery/errors/predicates";
import type { FeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { ConfigError } from "@coxswain/apimachinery/flags/run-main";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import type { RootLogger } from "@coxswain/apimachinery/logging/logger";
import { semanticEqual } from "@coxswain/apimachinery/meta/deep-equal";
import { newMetricsRegistry } from "@coxswain/apimachinery/metrics/registry";
import type { Node, NodeStatus, Pod, Service } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { RuntimeClass } from "@coxswain/apimachinery/schema/kinds/node/v1";
import {
  nodes,
  pods as podResource,
  runtimeClasses,
  services as serviceResource,
} from "@coxswain/apimachinery/schema/kinds/resources";
import { watchedCertificatePool } from "@coxswain/apimachinery/serving/authentication/certificate-pool";
import { type HttpServer, startHttpServer } from "@coxswain/apimachinery/serving/https-server";
import { newDebugPages } from "@coxswain/apimachinery/serving/pprof";
import { selfSignedPair } from "@coxswain/apimachinery/serving/self-signed";
import { parseSniCertKey } from "@coxswain/apimachinery/serving/tls-options";
import type { AgentConfig } from "./config.ts";
import { type DnsConfig, parseResolvConf } from "./environment/dns.ts";
import { rotateClientCertificate } from "./node/certificates.ts";
import { runNodeLease } from "./node/lease.ts";
import { defaultAddress, filesystemOf, readMachine } from "./node/machine.ts";
import { initialNode, nodeStatus } from "./node/node-status.ts";
import { newRegistration, type Registration } from "./node/registration.ts";
import { admitPod, underPressure } from "./pods/admit.ts";
import { type MirrorPods, newMirrorPods } from "./pods/mirror-pods.ts";
import { containerFieldPath, fullName, isMirrorPod, isStaticPod, type NodePod } from "./pods/pod.ts";
import { isTerminal, newPodRunner } from "./pods/pod-runner.ts";
import { newPodWorkers } from "./pods/pod-workers.ts";
import { newHookRunner } from "./probes/lifecycle-hooks.ts";
import { newProbeManager } from "./probes/probe-manager.ts";
import { allocatable as newAllocatable } from "./resources/allocatable.ts";
import { newCgroups } from "./resources/cgroups.ts";
import { newEviction, type Pressure, parseThresholds } from "./resources/eviction.ts";
import { quantityOf, type ResourceList } from "./resources/pod-resources.ts";
import { observeNode, podUsage } from "./resources/usage.ts";
import { collectContainers } from "./runtime/container-gc.ts";
import type { ContainerEvent } from "./runtime/containers.ts";
import { openCredentialProviders } from "./runtime/credential-providers.ts";
import { newCriClient } from "./runtime/cri-client.ts";
import type { Cri } from "./runtime/cri-schema.ts";
import { newImageGc } from "./runtime/image-gc.ts";
import { newImagePuller } from "./runtime/images.ts";
import { newLifecycleEvents } from "./runtime/lifecycle-events.ts";
import { runLogRotation } from "./runtime/log-rotation.ts";
import { podLogDirectory, removePodLogs } from "./runtime/pod-logs.ts";
import type { ContainerRuntime } from "./runtime/runtime.ts";
import { newAuth } from "./server/auth.ts";
import { newAgentMetrics } from "./server/metrics.ts";
import { newHealthHandler, newKubeletHandler, type ServerContext } from "./server/server.ts";
import { newApiObjects, noObjects } from "./sources/api-objects.ts";
import { followApiserver } from "./sources/apiserver.ts";
import { runFileSource } from "./sources/file.ts";
import { runHttpSource } from "./sources/http.ts";
import { newPodSources, type SourceName } from "./sources/merge.ts";
import { newStatusManager } from "./status/status-manager.ts";
import { systemMounter } from "./volumes/mount.ts";
import { newVolumeManager } from "./volumes/volume-manager.ts";

export interface AgentOptions {
  config: AgentConfig;
  /** Undefined for standalone mode: only static Pods, nobody is told of anything. */
  api: ClientConfig | undefined;
  featureGates: FeatureGates;
  clock: Clock;
  log: RootLogger;
  /** Where containers log to; fixed on a node, below a folder of their own in tests. */
  podLogsDir?: string;
  containerLogsDir?: string;
  /** Takes the place of the runtime that the configuration names. */
  runtime?: ContainerRuntime;
}

export interface RunningAgent {
  /** Ports that are served, where the configuration says 0. */
  port: number;
  healthzPort: number;
  /** Resolves when everything has stopped; containers go on. */
  stop(): Promise<void>;
}

const housekeepingMs = 2_000;
const containerGcMs = 60_000;
const imageGcMs = 300_000;
const evictionMs = 10_000;
const statusResyncMs = 10_000;
const runtimeCheckMs = 5_000;
const runtimeSilentMs = 30_000;

/**
 * Connects the rooms and starts them: first what answers questions of the machine, then the runtime and the node's own
 * record, then the workers, at last the sources that give them work.
 * @throws ConfigError when the machine is not as it has to be (swap, cgroups, certificates)
 */
export async function startAgent(options: AgentOptions): Promise<RunningAgent> {
  const { config, clock, log, featureGates } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  const startedAt = clock.now();
  const podLogsDir = options.podLogsDir ?? "/var/log/pods";
  const containerLogsDir = options.containerLogsDir ?? "/var/log/containers";

  const machine = await readMachine();
  if (config.failSwapOn && machine.swapBytes > 0) {
    throw new ConfigError(
      "running with swap on is not supported, please disable swap! or set --fail-swap-on flag to false. /proc/swaps contained entries",
    );
  }
  const hostname = config.hostnameOverride || machine.hostname;
  const nodeName = hostname.toLowerCase().trim();
  const podsDir = join(config.rootDir, "pods");
  for (const dir of [config.rootDir, podsDir]) await mkdir(dir, { recursive: true, mode: 0o750 });
  await mkdir(podLogsDir, { recursive: true, mode: 0o755 });
  const ips = await nodeAddresses(config.nodeIp);
  const maxPods = config.podsPerCore > 0 ? Math.min(config.maxPods, config.podsPerCore * machine.cpuCount) : config.maxPods;

  // ---- metrics and the runtime
  const metrics = newMetricsRegistry({ processMetrics: true });
  const probeMetrics = newMetricsRegistry();
  const agentMetrics = newAgentMetrics(metrics);
  agentMetrics.nodeName.labels(nodeName).set(1);
  const probeTotal = probeMetrics.counter({
    name: "prober_probe_total",
    help: "Cumulative number of a liveness, readiness or startup probe for a container by result.",
    labels: ["probe_type", "result", "container", "pod", "namespace", "pod_uid"],
  });
  const runtime =
    options.runtime ??
    newCriClient({
      endpoint: config.runtimeEndpoint,
      imageEndpoint: config.imageEndpoint || undefined,
      requestTimeoutMs: config.runtimeRequestTimeoutMs,
      onCall: agentMetrics.runtimeCall,
    });
  const runtimeState = {
    /** When the runtime last said that it is ready. */
    lastReady: Number.NEGATIVE_INFINITY,
    problem: undefined as string | undefined,
    network: "network plugin is not ready: container runtime status check may not have completed yet" as string | undefined,
    version: undefined as { name: string; version: string } | undefined,
  };

  // ---- the API server
  const api = options.api;
  const observer = clientMetrics(metrics);
  const client =
    api === undefined
      ? undefined
      : newClient(
          { ...api, qps: config.kubeApiQps, burst: config.kubeApiBurst, userAgent: userAgentOf("kubelet") },
          { observer },
        );
  // Heartbeats and events do not stand in line behind the rest.
  const heartbeatClient =
    api === undefined ? undefined : newClient({ ...api, qps: -1, userAgent: userAgentOf("kubelet") }, { observer });
  const eventClient =
    api === undefined
      ? undefined
      : newClient(
          {
            ...api,
            qps: config.eventQps === 0 ? -1 : config.eventQps,
            burst: config.eventBurst,
            userAgent: userAgentOf("kubelet"),
          },
          { observer },
        );
  const informers = client === undefined ? undefined : newInformerFactory(client, { log, clock });
  const nodeInformer = informers?.for<Node>(nodes, { fieldSelector: `metadata.name=${nodeName}` });
  const serviceInformer = informers?.for<Service>(serviceResource);
  const podInformer = informers?.for<Pod>(podResource, { fieldSelector: `spec.nodeName=${nodeName}` });
  const recorder: EventRecorder | undefined =
    eventClient === undefined
      ? undefined
      : newEventRecorder({ client: eventClient, component: "kubelet", host: nodeName, log, clock });
  const nodeReference = { apiVersion: "v1", kind: "Node", name: nodeName, uid: nodeName };
  const nodeEvent = (type: "Normal" | "Warning", reason: string, message: string): void =>
    recorder?.event(nodeReference, type, reason, message);
  const podEvent: ContainerEvent = (pod, container, type, reason, message) => {
    log.v(3)?.info("Event occurred", { object: `${pod.metadata.namespace}/${pod.metadata.name}`, type, reason, message });
    const { namespace, name, uid, resourceVersion } = pod.metadata;
    recorder?.event(
      {
        apiVersion: "v1",
        kind: "Pod",
        namespace,
        name,
        uid,
        ...(resourceVersion === undefined ? {} : { resourceVersion }),
        ...(container === undefined ? {} : { fieldPath: containerFieldPath(container.kind, container.name) }),
      },
      type,
      reason,
      message,
    );
  };

  // ---- what the node is
  let lastNode: Node | undefined;
  const initial = (): Node =>
    initialNode({
      name: nodeName,
      hostname,
      labels: config.nodeLabels,
      taints: config.registerWithTaints,
      schedulable: config.registerSchedulable,
      providerId: config.providerId,
      architecture: machine.architecture,
    });
  const node = (): Node => nodeInformer?.lister.get(nodeName) ?? lastNode ?? initial();
  const events = newLifecycleEvents({
    runtime,
    clock,
    log,
    onChange: (uid) => workers.wake(uid),
    onRelist: (ms) => agentMetrics.relist.observe(ms / 1000),
  });
  const problems = (): string[] =>
    [
      clock.monotonic() - runtimeState.lastReady > runtimeSilentMs ? "container runtime is down" : undefined,
      runtimeState.problem,
      events.problem(),
      runtimeState.network === undefined ? undefined : `container runtime network not ready: ${runtimeState.network}`,
    ].filter((problem) => problem !== undefined);
  let images: Cri<"Image">[] = [];
  let pressure: Pressure = { memory: false, disk: false, pid: false };
  const makeStatus = async (current: NodeStatus | undefined): Promise<NodeStatus> =>
    nodeStatus({
      machine,
      hostname,
      ips,
      maxPods,
      storageBytes: (await filesystemOf(config.rootDir)).capacityBytes,
      reserved: { kube: config.kubeReserved, system: config.systemReserved, evictionHard: config.evictionHard },
      runtime: runtimeState.version,
      kubeletPort: config.port,
      images,
      maxImages: config.nodeStatusMaxImages,
      conditions: {
        problems: problems(),
        memoryPressure: pressure.memory,
        diskPressure: pressure.disk,
        pidPressure: pressure.pid,
      },
      current,
      now: clock.now(),
    });
  const ownStatus = await makeStatus(undefined);
  const allocatable = (): ResourceList => node().status?.allocatable ?? ownStatus.allocatable ?? {};

  // ---- volumes, cgroups, images
  const objects = client === undefined ? noObjects : newApiObjects(client, clock);
  const mounter = systemMounter;
  const volumes = newVolumeManager({ podsDir, objects, mounter, clock, log });
  const cgroups = await newCgroups({
    root: config.cgroupRoot || "/",
    perQos: config.cgroupsPerQos,
    cfsQuota: config.cpuCfsQuota,
    cfsPeriodUs: config.cpuCfsPeriodMs * 1000,
    podPidsLimit: config.podPidsLimit,
    log,
  });
  try {
    const enforce = config.enforceNodeAllocatable.includes("pods");
    const { kubeReserved: kube, systemReserved: system } = config;
    // What eviction keeps free is not taken from the cgroup: eviction comes first, the kernel's killer after it.
    const limits = newAllocatable(ownStatus.capacity ?? {}, { kube, system, evictionHard: {} });
    await cgroups.start(
      { milliCpu: quantityOf(limits, "cpu").milliValue(), memoryBytes: quantityOf(limits, "memory").value() },
      enforce,
    );
  } catch (err) {
    throw new ConfigError(`Failed to initialize the cgroups of pods: ${(err as Error).message}`);
  }
  const { configFile } = config.imageCredentialProviders;
  const puller = newImagePuller({
    ...(configFile !== "" && featureGates.enabled("KubeletCredentialProviders")
      ? { credentialProviders: openCredentialProviders({ ...config.imageCredentialProviders, clock, log }) }
      : {}),
    runtime,
    clock,
    serialize: config.serializeImagePulls,
    qps: config.registryQps,
    burst: config.registryBurst,
  });

  // ---- sources, status, probes, workers
  const expected: SourceName[] = [];
  if (config.staticPodPath !== "") expected.push("file");
  if (config.staticPodUrl !== "") expected.push("http");
  if (client !== undefined) expected.push("api");
  const rejected = new Set<string>();
  const apiPods = (): NodePod[] => (podInformer?.lister.list() ?? []) as NodePod[];
  const mirrors: MirrorPods | undefined =
    client === undefined
      ? undefined
      : newMirrorPods({ client, log, apiPods, node: async () => nodeInformer?.lister.get(nodeName) ?? lastNode });
  const status = newStatusManager({
    client,
    clock,
    log,
    apiPodOf: (pod) =>
      isStaticPod(pod) ? mirrors?.of(pod) : podInformer?.lister.get(`${pod.metadata.namespace}/${pod.metadata.name}`),
  });
  const probes = newProbeManager({
    runtime,
    clock,
    log,
    event: podEvent,
    statusOf: status.get,
    onChange: (uid) => workers.wake(uid),
    grpcEnabled: featureGates.enabled("GRPCContainerProbe"),
    onProbe: (kind, result, pod, container) => {
      const { name, namespace, uid } = pod.metadata;
      const kindName = `${kind[0]?.toUpperCase()}${kind.slice(1)}`;
      probeTotal.labels(kindName, result, container, name, namespace, uid).inc();
    },
  });
  const hostDns = await readHostDns(config.resolvConf, log);
  const runner = newPodRunner({
    containers: {
      runtime,
      clock,
      log,
      event: podEvent,
      runHook: newHookRunner(runtime),
      podLogsDir,
      containerLogsDir,
      seccompDefault: config.seccompDefault && featureGates.enabled("SeccompDefault"),
      seccompRoot: join(config.rootDir, "seccomp"),
    },
    images: puller,
    volumes,
    objects,
    cgroups,
    probes,
    status,
    mounter,
    clock,
    log,
    node: {
      name: nodeName,
      ips: () => ips,
      allocatable,
      memoryCapacityBytes: machine.memoryBytes,
      cfsQuota: config.cpuCfsQuota,
      cfsPeriodUs: config.cpuCfsPeriodMs * 1000,
      pageSizes: machine.pageSizes,
      clusterDomain: config.clusterDomain,
    },
    dns: () => ({ clusterDns: config.clusterDns, clusterDomain: config.clusterDomain, host: hostDns, hostIps: ips }),
    services: () => (serviceInformer === undefined ? [] : serviceInformer.synced ? serviceInformer.lister.list() : undefined),
    networkProblem: () => runtimeState.network,
    runtimeHandler: (pod) => runtimeHandler(client, pod),
    prepare: async (pod) => mirrors?.ensure(pod),
  });
  const workers = newPodWorkers({
    runner,
    clock,
    log,
    syncFrequencyMs: config.syncFrequencyMs,
    onSynced: (ms) => agentMetrics.syncPod.labels("sync").observe(ms / 1000),
    onFailure: (pod, err) =>
      podEvent(pod, undefined, "Warning", "FailedSync", `error determining status: ${(err as Error).message}`),
    onGone: async (pod, { runtimeOnly }) => {
      if (runtimeOnly) return;
      // Not awaited: the API server may be away for long, the worker has nothing left to do.
      void status.finish(pod).then(() => status.forget(pod.metadata.uid));
    },
  });

  function accept(pod: NodePod): void {
    const { uid } = pod.metadata;
    const isNew = !workers.knows(uid);
    if (isNew && pod.metadata.deletionTimestamp == null && !isTerminal(pod.status ?? {})) {
      const others = sources
        .list()
        .filter((other) => isActive(other) && other.metadata.uid !== uid && workers.knows(other.metadata.uid));
      const { allowedUnsafeSysctls } = config;
      const rejection =
        underPressure(pod, pressure) ??
        admitPod({
          pod,
          others,
          node: { ...node(), name: nodeName },
          allocatable: allocatable(),
          allowedUnsafeSysctls,
        });
      if (rejection !== undefined) {
        rejected.add(uid);
        podEvent(pod, undefined, "Warning", rejection.reason, rejection.message);
        status.set(pod, { ...pod.status, phase: "Failed", reason: rejection.reason, message: `Pod ${rejection.message}` });
        return;
      }
    }
    workers.update(pod);
  }

  const isActive = (pod: NodePod): boolean =>
    !rejected.has(pod.metadata.uid) &&
    !workers.hasEnded(pod.metadata.uid) &&
    !isTerminal(status.get(pod.metadata.uid) ?? pod.status ?? {});

  const sources = newPodSources(expected, {
    added(pod) {
      if (isMirrorPod(pod)) {
        wakeStatic(pod);
        return;
      }
      accept(pod);
    },
    updated(pod, previous) {
      if (isMirrorPod(pod)) {
        wakeStatic(pod);
        return;
      }
      if (rejected.has(pod.metadata.uid) && pod.metadata.deletionTimestamp == null) return;
      if (matters(pod, previous)) workers.update(pod);
    },
    removed(pod) {
      rejected.delete(pod.metadata.uid);
      if (isMirrorPod(pod)) {
        wakeStatic(pod);
        return;
      }
      if (workers.knows(pod.metadata.uid)) workers.remove(pod);
      else status.forget(pod.metadata.uid);
    },
  });

  /** A mirror came, changed or went: its static Pod sees to it. */
  function wakeStatic(mirror: NodePod): void {
    const own = sources.list().find((pod) => isStaticPod(pod) && fullName(pod) === fullName(mirror));
    if (own === undefined) return;
    status.resync(own.metadata.uid);
    workers.wake(own.metadata.uid);
  }

  const podByName = (namespace: string, name: string): NodePod | undefined => {
    const found = sources.list().filter((pod) => pod.metadata.namespace === namespace && pod.metadata.name === name);
    return found.find((pod) => !isMirrorPod(pod)) ?? found[0];
  };

  // ---- start
  const background: Promise<unknown>[] = [];
  const every = (ms: number, what: string, work: () => Promise<void> | void): void => {
    const loop = async (): Promise<void> => {
      while (!signal.aborted) {
        try {
          await work();
        } catch (err) {
          if (!signal.aborted) log.error("a periodic task failed", err, { task: what });
        }
        await clock.sleep(ms, signal).catch(() => undefined);
      }
    };
    background.push(loop());
  };

  let registration: Registration | undefined;
  every(runtimeCheckMs, "runtime status", async () => {
    const before = problems().length;
    await checkRuntime(runtime, runtimeState, clock);
    if (runtimeState.problem === undefined && runtimeState.version !== undefined && images.length === 0)
      images = await runtime.listImages();
    if (problems().length !== before) registration?.hurry();
  });
  every(60_000, "images", async () => {
    images = await runtime.listImages();
  });
  background.push(events.run(signal));

  const clientCa = config.clientCaFile === "" ? undefined : watchedCertificatePool(config.clientCaFile, undefined, clock);
  if (clientCa !== undefined) signal.addEventListener("abort", () => clientCa.close(), { once: true });
  const auth = newAuth({
    client: heartbeatClient,
    clock,
    log,
    metrics,
    nodeName,
    anonymous: config.anonymousAuth,
    tokenWebhook: config.webhookAuth,
    tokenTtlMs: config.webhookAuthCacheTtlMs,
    clientCa,
    mode: config.authorizationMode,
    authorizedTtlMs: config.authorizedTtlMs,
    unauthorizedTtlMs: config.unauthorizedTtlMs,
  });
  const health = (): string | undefined => events.problem();
  const served: Omit<ServerContext, "auth" | "debuggingHandlers"> = {
    log,
    runtime,
    events,
    metrics,
    probeMetrics,
    podLogsDir,
    pods: () => sources.list().filter((pod) => !isMirrorPod(pod)),
    podByName,
    statusOf: (pod) => status.get(pod.metadata.uid) ?? pod.status,
    stats: {
      runtime,
      nodeName,
      rootDir: config.rootDir,
      pods: () => sources.list(),
      startedAt,
      now: () => clock.now(),
    },
    machine,
    config: () => config.written,
    health,
    now: () => clock.now(),
  };
  const servers: HttpServer[] = [];
  let port = config.port;
  if (config.enableServer) {
    const files =
      config.tlsCertFile !== "" && config.tlsPrivateKeyFile !== ""
        ? { certFile: config.tlsCertFile, keyFile: config.tlsPrivateKeyFile }
        : await selfSignedPair({
            certDir: config.certDir,
            pairName: "kubelet",
            host: nodeName,
            dnsNames: [nodeName],
            ips: [...ips, "127.0.0.1"],
          });
    const server = await startHttpServer({
      port: config.port,
      bindAddress: config.address,
      tls: {
        ...files,
        clientCaFile: config.clientCaFile || undefined,
        sni: config.tlsSniCertKeys.map(parseSniCertKey),
        minVersion: config.tlsMinVersion || undefined,
        cipherSuites: config.tlsCipherSuites.length === 0 ? undefined : config.tlsCipherSuites,
      },
      log,
      handler: newKubeletHandler({
        ...served,
        auth,
        debuggingHandlers: config.enableDebuggingHandlers,
        debugPages: config.enableDebuggingHandlers ? newDebugPages({ log, clock }) : undefined,
      }),
    });
    servers.push(server);
    port = server.port;
  }
  if (config.readOnlyPort > 0) {
    servers.push(
      await startHttpServer({
        port: config.readOnlyPort,
        bindAddress: config.address,
        handler: newKubeletHandler({ ...served, auth: undefined, debuggingHandlers: false }),
        log,
      }),
    );
  }
  let healthzPort = config.healthzPort;
  if (config.healthzPort > 0) {
    const server = await startHttpServer({
      port: config.healthzPort,
      bindAddress: config.healthzBindAddress,
      handler: newHealthHandler(health),
      log,
    });
    servers.push(server);
    healthzPort = server.port;
  }

  if (heartbeatClient !== undefined && informers !== undefined && nodeInformer !== undefined && podInformer !== undefined) {
    nodeEvent("Normal", "Starting", "Starting kubelet.");
    registration = newRegistration({
      client: heartbeatClient,
      clock,
      log,
      initial,
      register: config.registerNode,
      nodeName,
      status: (current) => makeStatus(current.status),
      updateFrequencyMs: config.nodeStatusUpdateFrequencyMs,
      reportFrequencyMs: config.nodeStatusReportFrequencyMs,
      onUpdate: (updated) => {
        lastNode = updated;
      },
      onReadyChange: (ready) =>
        nodeEvent(
          "Normal",
          ready ? "NodeReady" : "NodeNotReady",
          `Node ${nodeName} status is now: ${ready ? "NodeReady" : "NodeNotReady"}`,
        ),
    });
    background.push(registration.run(signal));
    background.push(
      runNodeLease(
        { client: heartbeatClient, clock, log, nodeName, durationSeconds: config.nodeLeaseDurationSeconds, node: () => lastNode },
        signal,
      ),
    );
    if (config.rotateCertificates && api?.certFile?.startsWith(config.certDir)) {
      const onRotated = (): void => log.info("New connections use the new client certificate");
      background.push(
        rotateClientCertificate(heartbeatClient, { nodeName, certDir: config.certDir, clock, log, onRotated }, signal),
      );
    }
    followApiserver(podInformer as SharedInformer<Pod>, sources);
    informers.start(signal);
    background.push(
      podInformer.waitForSync(signal).then(
        () => sources.markSynced("api"),
        () => undefined,
      ),
    );
    every(statusResyncMs, "status resync", () => status.resync());
  } else {
    log.warn("Standalone mode, no API client");
  }
  const { nodeName: _, ...source } = { nodeName, sources, clock, log };
  if (config.staticPodPath !== "") {
    background.push(
      runFileSource({ ...source, nodeName, path: config.staticPodPath, frequencyMs: config.fileCheckFrequencyMs }, signal),
    );
  }
  if (config.staticPodUrl !== "") {
    const { staticPodUrl: url, staticPodUrlHeader: headers, httpCheckFrequencyMs: frequencyMs } = config;
    background.push(runHttpSource({ ...source, nodeName, url, headers: headers ?? {}, frequencyMs }, signal));
  }
  const isKnown = (uid: string): boolean => sources.get(uid) !== undefined || workers.knows(uid);
  every(housekeepingMs, "housekeeping", async () => {
    agentMetrics.runningPods.set(events.pods()?.size ?? 0);
    if (!sources.allSynced()) return; // what is not wanted is not known yet
    if (events.pods() === undefined) return;
    // What was looked at a moment ago may be gone by now.
    if ([...(events.pods()?.keys() ?? [])].some((uid) => !isKnown(uid))) await events.relist();
    const inRuntime = events.pods() ?? new Map();
    for (const { uid, name, namespace } of inRuntime.values()) {
      if (isKnown(uid)) continue;
      log.info("Ending a pod that nobody wants any more", { pod: `${namespace}/${name}`, podUID: uid });
      workers.removeOrphan(orphan(uid, name, namespace));
    }
    for (const uid of await volumes.list()) {
      if (isKnown(uid) || inRuntime.has(uid)) continue;
      await removePodLogs({ podLogsDir, containerLogsDir }, uid);
      await volumes.remove(uid);
    }
    for (const uid of await cgroups.list()) if (!isKnown(uid) && !inRuntime.has(uid)) await cgroups.remove(uid);
    await cgroups.updateBurstable(sources.list().filter(isActive));
    await mirrors?.removeOrphans(sources.list());
    runner.collect();
  });
  const collectDead = (): Promise<void> =>
    collectContainers({
      runtime,
      clock,
      log,
      containerLogsDir,
      maxPerContainer: config.maxDeadPerContainer,
      maxTotal: config.maxDead,
      minAgeMs: config.deadMinAgeMs,
      isKnown,
      allSourcesSynced: () => sources.allSynced() && events.pods() !== undefined,
    });
  every(containerGcMs, "container garbage collection", collectDead);
  const imageGc = newImageGc({
    runtime,
    clock,
    log,
    highThresholdPercent: config.imageGcHighThreshold,
    lowThresholdPercent: config.imageGcLowThreshold,
    minAgeMs: config.imageMinAgeMs,
    sandboxImage: config.sandboxImage,
    event: nodeEvent,
  });
  let imageDir: string | undefined;
  const eviction = newEviction({
    clock,
    log,
    thresholds: parseThresholds({
      hard: config.evictionHard,
      soft: config.evictionSoft,
      softGraceMs: config.evictionSoftGraceMs,
      minReclaim: config.evictionMinReclaim,
    }),
    transitionMs: config.evictionTransitionMs,
    maxGraceSeconds: config.evictionMaxPodGraceSeconds,
    observe: async () => {
      imageDir ??= (await runtime.imageFilesystems().catch(() => []))[0]?.fsId?.mountpoint;
      return observeNode(config.rootDir, imageDir);
    },
    usage: () =>
      podUsage({
        runtime,
        pods: sources.list().filter(isActive),
        podDir: volumes.podDir,
        logDir: (pod) => podLogDirectory(podLogsDir, pod),
        everyPod: pressure.disk,
      }),
    activePods: () => sources.list().filter((pod) => !isMirrorPod(pod) && isActive(pod)),
    reclaimDisk: async () => {
      await collectDead();
      await imageGc.removeUnused();
    },
    evict: async (pod, verdict, graceSeconds) => {
      podEvent(pod, undefined, "Warning", verdict.reason, verdict.message);
      await workers.evict(pod.metadata.uid, verdict, graceSeconds);
    },
    onPressureChange: (next) => {
      pressure = next;
      registration?.hurry();
    },
  });
  every(evictionMs, "eviction", () => eviction.check());
  every(imageGcMs, "image garbage collection", () => imageGc.collect());
  background.push(
    runLogRotation(
      { runtime, clock, log, maxSizeBytes: config.containerLogMaxSizeBytes, maxFiles: config.containerLogMaxFiles },
      signal,
    ),
  );
  log.info("Started kubelet", { node: nodeName, port });

  return {
    port,
    healthzPort,
    async stop() {
      stopping.abort(new Error("the agent stops"));
      workers.stop();
      status.stop();
      await Promise.all(servers.map((server) => server.close(0)));
      await Promise.allSettled(background);
      for (const each of [client, heartbeatClient, eventClient]) each?.close();
      if (options.runtime === undefined) runtime.close();
    },
  };
}

/** Whether a change is one that a worker has to know of; a status is written by ourselves. */
function matters(pod: NodePod, previous: NodePod): boolean {
  const gates = (pod.spec.readinessGates ?? []).length > 0;
  return (
    gates ||
    !semanticEqual(pod.spec, previous.spec) ||
    !semanticEqual(pod.metadata.labels, previous.metadata.labels) ||
    !semanticEqual(pod.metadata.annotations, previous.metadata.annotations) ||
    pod.metadata.deletionTimestamp !== previous.metadata.deletionTimestamp ||
    pod.metadata.deletionGracePeriodSeconds !== previous.metadata.deletionGracePeriodSeconds
  );
}

function orphan(uid: string, name: string, namespace: string): NodePod {
  return { apiVersion: "v1", kind: "Pod", metadata: { uid, name, namespace }, spec: { containers: [] } };
}

async function checkRuntime(
  runtime: ContainerRuntime,
  state: {
    lastReady: number;
    problem: string | undefined;
    network: string | undefined;
    version: { name: string; version: string } | undefined;
  },
  clock: Clock,
): Promise<void> {
  let conditions: Cri<"RuntimeCondition">[];
  try {
    conditions = (await runtime.status()).conditions;
    state.version ??= await runtime
      .version()
      .then(({ runtimeName, runtimeVersion }) => ({ name: runtimeName, version: runtimeVersion }));
  } catch (err) {
    state.problem = `container runtime status check failed: ${(err as Error).message}`;
    state.version = undefined;
    return;
  }
  const find = (type: string): Cri<"RuntimeCondition"> | undefined => conditions.find((condition) => condition.type === type);
  const describe = (condition: Cri<"RuntimeCondition"> | undefined, type: string): string =>
    `${type}=${condition?.status ?? false} reason:${condition?.reason ?? ""} message:${condition?.message ?? ""}`;
  const network = find("NetworkReady");
  state.network = network?.status === true ? undefined : describe(network, "NetworkReady");
  const ready = find("RuntimeReady");
  if (ready?.status !== true) {
    state.problem = `container runtime not ready: ${describe(ready, "RuntimeReady")}`;
    return;
  }
  state.problem = undefined;
  state.lastReady = clock.monotonic();
}

async function nodeAddresses(nodeIp: string): Promise<string[]> {
  const given = nodeIp.split(",").filter((ip) => ip !== "" && ip !== "0.0.0.0" && ip !== "::");
  if (given.length > 0) return given;
  const found = await defaultAddress(isIPv6(nodeIp));
  return found === undefined ? ["127.0.0.1"] : [found];
}

async function readHostDns(path: string, log: RootLogger): Promise<DnsConfig> {
  const none: DnsConfig = { servers: [], searches: [], options: [] };
  if (path === "") return none;
  try {
    return parseResolvConf(await readFile(path, "utf8"));
  } catch (err) {
    log.error("Could not open resolv conf file", err, { path });
    return none;
  }
}

/** The runtime's name for the class that a Pod asks for. */
async function runtimeHandler(client: Client | undefined, pod: NodePod): Promise<string> {
  const name = pod.spec.runtimeClassName;
  if (name === undefined || name === "" || client === undefined) return "";
  try {
    return (await client.get<RuntimeClass>(runtimeClasses, { name })).handler;
  } catch (err) {
    if (isNotFound(err)) throw new Error(`failed to get sandbox runtime: no runtime for ${JSON.stringify(name)} is configured`);
    throw err;
  }
}
