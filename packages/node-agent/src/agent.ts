import { join } from "node:path";
import type { ClientConfig } from "@coxswain/apimachinery/client/config";
import type { Clock } from "@coxswain/apimachinery/clock/clock";
import { makeFolder } from "@coxswain/apimachinery/files/make-folder";
import type { FeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import type { RootLogger } from "@coxswain/apimachinery/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/metrics/registry";
import type { Node, NodeStatus } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { watchedCertificatePool } from "@coxswain/apimachinery/serving/authentication/certificate-pool";
import { newBackground } from "./background.ts";
import { type AgentConfig, asConfigError } from "./config.ts";
import { readHostDns } from "./environment/host-dns.ts";
import { type ApiConnection, newApiConnection } from "./node/api-connection.ts";
import { joinCluster } from "./node/join-cluster.ts";
import { filesystemOf, nodeAddresses, readMachine, refuseSwap } from "./node/machine.ts";
import { initialNode, nodeStatus } from "./node/node-status.ts";
import { newPodCidr } from "./node/pod-cidr.ts";
import type { Registration } from "./node/registration.ts";
import { newRuntimeHealth } from "./node/runtime-health.ts";
import { startPlugins } from "./plugins/start-plugins.ts";
import { admitPod, forbiddenSysctl, type Rejection, underPressure } from "./pods/admit.ts";
import { newPodIntake } from "./pods/intake.ts";
import { newMirrorPods } from "./pods/mirror-pods.ts";
import { isMirrorPod, isStaticPod, type NodePod } from "./pods/pod.ts";
import { newPodRunner } from "./pods/pod-runner.ts";
import { newPodWorkers } from "./pods/pod-workers.ts";
import { newHookRunner } from "./probes/lifecycle-hooks.ts";
import { newProbeManager } from "./probes/probe-manager.ts";
import type { Pressure } from "./resources/eviction.ts";
import { type OpenedManagers, openResourceManagers } from "./resources/open-resource-managers.ts";
import { quantityOf, type ResourceList } from "./resources/pod-resources.ts";
import { parseQosReserved } from "./resources/qos-reserve.ts";
import { reservationsOf } from "./resources/reservations.ts";
import { startCgroups } from "./resources/start-cgroups.ts";
import { readMachineTopology } from "./resources/topology/machine-topology.ts";
import { newVolumeUsages } from "./resources/volume-usage.ts";
import { openCredentialProviders } from "./runtime/credential-providers.ts";
import { newCriClient } from "./runtime/cri-client.ts";
import type { Cri } from "./runtime/cri-schema.ts";
import { type ImagePuller, newImagePuller } from "./runtime/images.ts";
import { newLifecycleEvents } from "./runtime/lifecycle-events.ts";
import type { ContainerRuntime } from "./runtime/runtime.ts";
import { runtimeHandler } from "./runtime/runtime-class.ts";
import { newAuth } from "./server/auth.ts";
import { listen } from "./server/listen.ts";
import { newAgentMetrics, newProbeMetrics } from "./server/metrics.ts";
import { newVolumeMetrics } from "./server/volume-metrics.ts";
import { openNodeShutdown } from "./shutdown/open-node-shutdown.ts";
import { newApiObjects, noObjects } from "./sources/api-objects.ts";
import { followApiserver } from "./sources/apiserver.ts";
import type { SourceName } from "./sources/merge.ts";
import { followStaticPods } from "./sources/static-sources.ts";
import { newAgentEvents } from "./status/events.ts";
import { newStatusManager } from "./status/status-manager.ts";
import { startUpkeep } from "./upkeep.ts";
import { newCsi } from "./volumes/csi/csi.ts";
import { newFlexVolumes } from "./volumes/flex/flex.ts";
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
  /** Wanted Pods that neither run nor have ended; undefined as long as not all that are wanted are known. */
  pending(): readonly string[] | undefined;
  /** Resolves when everything has stopped; containers go on. */
  stop(): Promise<void>;
}

const imageListMs = 60_000;
const statusResyncMs = 10_000;
const runtimeCheckMs = 5_000;
const volumeCheckMs = 2_000;

/**
 * Connects the rooms and starts them: first what answers questions of the machine, then the runtime and the node's own
 * record, then the workers, at last the sources that give them work.
 * @throws ConfigError when the machine is not as it has to be (swap, cgroups, certificates)
 */
export async function startAgent(options: AgentOptions): Promise<RunningAgent> {
  const { config, clock, log, featureGates } = options;
  const background = newBackground({ clock, log });
  const { signal } = background;
  const startedAt = clock.now();
  const podLogsDir = options.podLogsDir ?? "/var/log/pods";
  const containerLogsDir = options.containerLogsDir ?? "/var/log/containers";
  const machine = await readMachine();
  if (config.failSwapOn) asConfigError(() => refuseSwap(machine));
  const reservations = asConfigError(() => reservationsOf(config, machine));
  const hostname = config.hostnameOverride || machine.hostname;
  const nodeName = hostname.toLowerCase().trim();
  const podsDir = join(config.rootDir, "pods");
  for (const dir of [config.rootDir, podsDir]) await makeFolder(dir, 0o750);
  await makeFolder(podLogsDir, 0o755);
  const ips = await nodeAddresses(config.nodeIp);
  const topology = await readMachineTopology(machine.memoryBytes);

  // ---- the runtime and the API server
  const metrics = newMetricsRegistry({ processMetrics: true, ...config.metrics });
  const probeMetrics = newMetricsRegistry(config.metrics);
  const agentMetrics = newAgentMetrics(metrics);
  agentMetrics.nodeName.labels(nodeName).set(1);
  const runtime =
    options.runtime ??
    newCriClient({
      endpoint: config.runtimeEndpoint,
      imageEndpoint: config.imageEndpoint || undefined,
      requestTimeoutMs: config.runtimeRequestTimeoutMs,
      onCall: agentMetrics.runtimeCall,
    });
  const runtimeHealth = newRuntimeHealth({ runtime, clock });
  const api = options.api && newApiConnection({ api: options.api, config, nodeName, metrics, clock, log });
  const tell = newAgentEvents({ recorder: api?.recorder, nodeName, log });

  const podCidr = newPodCidr({ runtime, log });

  // ---- what the node is
  let lastNode: Node | undefined;
  let images: readonly Cri<"Image">[] = [];
  let pressure: Pressure = { memory: false, disk: false, pid: false };
  let registration: Registration | undefined;
  let opened: OpenedManagers | undefined;
  const initial = (): Node =>
    initialNode({
      name: nodeName,
      hostname,
      labels: config.nodeLabels,
      taints: config.registerWithTaints,
      schedulable: config.registerSchedulable,
      providerId: config.providerId,
      controllerAttachDetach: config.controllerAttachDetach,
      keepTerminatedPodVolumes: config.keepTerminatedPodVolumes,
      architecture: machine.architecture,
    });
  const registered = (): Node | undefined => api?.node.lister.get(nodeName) ?? lastNode;
  const events = newLifecycleEvents({
    runtime,
    clock,
    log,
    onChange: (uid) => workers.wake(uid),
    onRelist: (ms) => agentMetrics.relisted(ms, clock.now()),
  });
  const problems = (): string[] => {
    const network = runtimeHealth.networkProblem();
    return [
      ...runtimeHealth.problems(),
      events.problem(),
      network && `container runtime network not ready: ${network}`,
      csi?.problem(),
      shutdown?.problem(),
    ].filter((problem) => problem !== undefined);
  };
  const makeStatus = async (current: NodeStatus | undefined): Promise<NodeStatus> =>
    nodeStatus({
      machine,
      hostname,
      ips,
      maxPods: config.podsPerCore > 0 ? Math.min(config.maxPods, config.podsPerCore * machine.cpuCount) : config.maxPods,
      storageBytes: (await filesystemOf(config.rootDir)).capacityBytes,
      reserved: reservations,
      ...(opened !== undefined && { devices: opened.devices.amounts() }),
      runtime: runtimeHealth.version(),
      kubeletPort: config.port,
      images,
      maxImages: config.nodeStatusMaxImages,
      conditions: {
        problems: problems(),
        memoryPressure: pressure.memory,
        diskPressure: pressure.disk,
        pidPressure: pressure.pid,
      },
      volumesInUse: csi?.inUse(),
      current,
      now: clock.now(),
    });
  const mounter = systemMounter;
  const objects = api === undefined ? noObjects : newApiObjects(api.client, clock);
  const csi =
    api &&
    newCsi({
      client: api.client,
      csiDrivers: api.csiDrivers,
      recorder: api.recorder,
      tellPod: tell.pod,
      node: registered,
      nodeName,
      rootDir: config.rootDir,
      podsDir,
      controllerAttaches: config.controllerAttachDetach,
      featureGates,
      objects,
      mounter,
      clock,
      log,
      onCall: agentMetrics.csiCall,
      onChange: () => registration?.hurry(),
    });
  const activePods = (): NodePod[] => sources.list().filter((pod) => !isMirrorPod(pod) && intake.isActive(pod));
  const shutdown = openNodeShutdown(config, featureGates, {
    activePods,
    endPod: (pod, verdict, graceSeconds) => workers.evict(pod.metadata.uid, verdict, graceSeconds),
    tellNode: tell.node,
    onChange: () => registration?.hurry(),
    clock,
    log,
  });
  await csi?.restore();
  const ownStatus = await makeStatus(undefined);
  const allocatable = (): ResourceList => (registered() ?? initial()).status?.allocatable ?? ownStatus.allocatable ?? {};

  const { managers, cpu, memory, devices } = asConfigError(() => {
    opened = openResourceManagers({
      config,
      featureGates,
      topology,
      capacity: ownStatus.capacity ?? {},
      reservations,
      runtime,
      clock,
      log,
      activePods: () => (intake.sources.allSynced() ? intake.sources.list().filter(intake.isActive) : undefined),
      onDevicesChange: () => registration?.hurry(),
      onPluginRegistered: (resource) => agentMetrics.pluginRegistrations.labels(resource).inc(),
      onDevicesAllocated: (resource, ms) => agentMetrics.deviceAllocation.labels(resource).observe(ms / 1000),
    });
    return opened;
  });

  // ---- what Pods are made of
  const nodeLabels = () => registered()?.metadata.labels;
  const flex = newFlexVolumes({ pluginDir: config.volumePluginDir, podsDir, objects, mounter });
  const volumes = newVolumeManager({ podsDir, objects, mounter, clock, log, csi, flex, nodeLabels });
  const cgroups = await startCgroups({
    config,
    machine,
    capacity: ownStatus.capacity ?? {},
    reservations,
    memoryReservePercent: featureGates.enabled("QOSReserved") ? parseQosReserved(config.qosReserved) : undefined,
    tell,
    clock,
    signal,
    log,
  });
  const apiPods = (): NodePod[] => (api?.pods.lister.list() ?? []) as NodePod[];
  const mirrors = api && newMirrorPods({ client: api.client, log, apiPods, node: async () => registered() });
  const status = newStatusManager({
    client: api?.client,
    clock,
    log,
    apiPodOf: (pod) =>
      isStaticPod(pod) ? mirrors?.of(pod) : api?.pods.lister.get(`${pod.metadata.namespace}/${pod.metadata.name}`),
  });
  const probes = newProbeManager({
    runtime,
    clock,
    log,
    event: tell.pod,
    statusOf: status.get,
    onChange: (uid) => workers.wake(uid),
    grpcEnabled: featureGates.enabled("GRPCContainerProbe"),
    onProbe: newProbeMetrics(probeMetrics),
  });
  const hostDns = await readHostDns(config.resolvConf, log);

  // ---- workers and what gives them work
  const runner = newPodRunner({
    containers: {
      runtime,
      clock,
      log,
      event: tell.pod,
      runHook: newHookRunner(runtime),
      podLogsDir,
      containerLogsDir,
      seccompDefault: config.seccompDefault && featureGates.enabled("SeccompDefault"),
      seccompRoot: join(config.rootDir, "seccomp"),
    },
    images: openImagePuller(options, runtime),
    volumes,
    keepTerminatedPodVolumes: config.keepTerminatedPodVolumes,
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
      swap: !featureGates.enabled("NodeSwap") ? undefined : config.swapBehavior === "UnlimitedSwap" ? "any" : "limited",
      clusterDomain: config.clusterDomain,
    },
    resources: { ...managers, accessOf: devices.accessOf },
    onStart: agentMetrics.started,
    dns: () => ({ clusterDns: config.clusterDns, clusterDomain: config.clusterDomain, host: hostDns, hostIps: ips }),
    services: () => (api === undefined ? [] : api.services.synced ? api.services.lister.list() : undefined),
    networkProblem: runtimeHealth.networkProblem,
    runtimeHandler: (pod) => runtimeHandler(api?.client, pod),
    prepare: async (pod) => mirrors?.ensure(pod),
  });
  const workers = newPodWorkers({
    runner,
    clock,
    log,
    syncFrequencyMs: config.syncFrequencyMs,
    onSynced: (ms) => agentMetrics.syncPod.labels("sync").observe(ms / 1000),
    onFailure: (pod, err) =>
      tell.pod(pod, undefined, "Warning", "FailedSync", `error determining status: ${(err as Error).message}`),
    onGone: async (pod, { runtimeOnly }) => {
      if (runtimeOnly) return;
      // Not awaited: the API server may be away for long, the worker has nothing left to do.
      void status.finish(pod).then(() => status.forget(pod.metadata.uid));
    },
  });
  const intake = newPodIntake({
    expected: sourcesOf(config, api),
    workers,
    status,
    admit(pod, others) {
      const { allowedUnsafeSysctls } = config;
      const refused = underPressure(pod, pressure) ?? forbiddenSysctl({ pod, allowedUnsafeSysctls });
      if (refused !== undefined) return refused;
      const admit = (): Rejection | undefined =>
        admitPod({
          pod,
          others,
          node: { ...(registered() ?? initial()), name: nodeName },
          allocatable: atLeast(allocatable(), devices.inUse()),
          allowedUnsafeSysctls,
        }) ?? shutdown?.refusal();
      return managers.concerns(pod) ? managers.admit(pod).then((rejection) => rejection ?? admit()) : admit();
    },
    onRejected: (pod, { reason, message }) => {
      tell.pod(pod, undefined, "Warning", reason, message);
      status.set(pod, { ...pod.status, phase: "Failed", reason, message: `Pod ${message}` });
    },
  });
  const { sources } = intake;

  const usages = newVolumeUsages({ pods: () => sources.list().filter(intake.isActive), volumes, clock, log });
  newVolumeMetrics(metrics, { pods: sources.list, usages });

  // ---- start
  background.every(runtimeCheckMs, "runtime status", async () => {
    const before = problems().length;
    await runtimeHealth.check();
    if (runtimeHealth.isReady() && images.length === 0) images = await runtime.listImages();
    if (problems().length !== before) registration?.hurry();
  });
  background.every(imageListMs, "images", async () => {
    images = await runtime.listImages();
  });
  background.add(events.run(signal));
  if (config.volumeStatsMs > 0) background.every(config.volumeStatsMs, "usage of volumes", usages.refresh);
  await startPlugins({
    config,
    featureGates,
    background,
    managers: { cpu, memory, devices },
    csiHandler: csi?.handler,
    activePods,
    onResourcesRequest: (version) => agentMetrics.podResourcesRequests.labels(version).inc(),
    clock,
    log,
  });
  await shutdown?.start(signal).catch((err) => log.error("Failed to start node shutdown manager", err));
  if (config.cpuManagerPolicy !== "none")
    background.every(config.cpuManagerReconcileMs, "CPUs of containers", () => managers.reconcile());

  const clientCa = config.clientCaFile === "" ? undefined : watchedCertificatePool(config.clientCaFile, undefined, clock);
  signal.addEventListener("abort", () => clientCa?.close(), { once: true });
  const servers = await listen({
    config,
    nodeName,
    ips,
    clock,
    log,
    auth: newAuth({
      client: api?.heartbeat,
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
    }),
    context: {
      runtime,
      metrics,
      probeMetrics,
      podLogsDir,
      pods: () => sources.list().filter((pod) => !isMirrorPod(pod)),
      podByName: intake.named,
      statusOf: (pod) => status.get(pod.metadata.uid) ?? pod.status,
      stats: { runtime, nodeName, rootDir: config.rootDir, pods: sources.list, volumes: usages.of, startedAt, now: clock.now },
      machine,
      config: () => config.written,
      health: events.problem,
      now: clock.now,
    },
  });

  background.add(podCidr.update(config.podCidr));
  if (api === undefined) log.warn("Standalone mode, no API client");
  else {
    registration = joinCluster({
      config,
      api,
      background,
      clock,
      log,
      tell,
      nodeName,
      names: { dnsNames: [hostname], ips },
      initial,
      status: makeStatus,
      onUpdate(node) {
        lastNode = node;
        void podCidr.update((node.spec?.podCIDRs ?? []).join(","));
      },
    });
    followApiserver(api.pods, sources);
    api.informers.start(signal);
    if (csi !== undefined) {
      background.add(csi.start(signal));
      background.every(volumeCheckMs, "unused volumes", csi.collect);
      signal.addEventListener("abort", csi.close, { once: true });
    }
    background.add(api.pods.waitForSync(signal).then(() => sources.markSynced("api")));
    background.every(statusResyncMs, "status resync", () => status.resync());
  }
  followStaticPods(config, { sources, nodeName, clock, log }, background);

  startUpkeep({
    config,
    background,
    runtime,
    clock,
    log,
    intake,
    workers,
    runner,
    events,
    volumes,
    cgroups,
    mirrors,
    podLogsDir,
    containerLogsDir,
    tell,
    onLook(pods, containers) {
      agentMetrics.runningPods.set(pods);
      agentMetrics.running(containers);
    },
    onEvicted: (signal) => agentMetrics.evictions.labels(signal).inc(),
    onPressureChange: (next) => {
      pressure = next;
      registration?.hurry();
    },
  });
  log.info("Started kubelet", { node: nodeName, port: servers.port });

  return {
    port: servers.port,
    healthzPort: servers.healthzPort,
    pending() {
      const phaseOf = (pod: NodePod): string => status.get(pod.metadata.uid)?.phase ?? "";
      const waiting = sources.list().filter((pod) => !["Running", "Succeeded"].includes(phaseOf(pod)));
      return sources.allSynced() ? waiting.map((pod) => `${pod.metadata.name}_${pod.metadata.namespace}`) : undefined;
    },
    async stop() {
      const stopped = background.stop();
      workers.stop();
      status.stop();
      await servers.close();
      await stopped;
      api?.close();
      if (options.runtime === undefined) runtime.close();
    },
  };
}

/** What Pods hold of a plugin's devices is there for them, also while the plugin is away for a moment. */
function atLeast(allocatable: ResourceList, inUse: ResourceList): ResourceList {
  const raised = Object.entries(inUse).filter(([name]) => quantityOf(inUse, name).cmp(quantityOf(allocatable, name)) > 0);
  return { ...allocatable, ...Object.fromEntries(raised) };
}

/** What has to be heard before anything is taken for unwanted. */
function sourcesOf(config: AgentConfig, api: ApiConnection | undefined): SourceName[] {
  const wanted: Record<SourceName, boolean> = {
    file: config.staticPodPath !== "",
    http: config.staticPodUrl !== "",
    api: api !== undefined,
  };
  return (Object.keys(wanted) as SourceName[]).filter((name) => wanted[name]);
}

function openImagePuller({ config, featureGates, clock, log }: AgentOptions, runtime: ContainerRuntime): ImagePuller {
  const providers = config.imageCredentialProviders;
  const asksPlugins = providers.configFile !== "" && featureGates.enabled("KubeletCredentialProviders");
  return newImagePuller({
    credentialProviders: asksPlugins ? openCredentialProviders({ ...providers, clock, log }) : undefined,
    runtime,
    clock,
    serialize: config.serializeImagePulls,
    qps: config.registryQps,
    burst: config.registryBurst,
  });
}
