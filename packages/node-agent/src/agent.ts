import { join } from "node:path";
import type { ClientConfig } from "@coxswain/apimachinery/client/config";
import type { Clock } from "@coxswain/apimachinery/clock/clock";
import { answerQuestions } from "@coxswain/apimachinery/decisions/answer-questions";
import { DecisionLog } from "@coxswain/apimachinery/decisions/decision-log";
import { kubeletRecipient } from "@coxswain/apimachinery/decisions/question";
import { makeFolder } from "@coxswain/apimachinery/files/make-folder";
import type { FeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import type { RootLogger } from "@coxswain/apimachinery/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/metrics/registry";
import type { AgentConfig } from "./agent-config.ts";
import { newBackground } from "./background.ts";
import { asConfigError } from "./config-error.ts";
import type { DynamicConfig } from "./dynamic-config/dynamic-config.ts";
import { checkResolvConf } from "./environment/check-resolv-conf.ts";
import { newAgentEvents } from "./events.ts";
import { readAppArmor } from "./host/app-armor.ts";
import { watchSystemOoms } from "./host/kernel-log.ts";
import { newApiConnection } from "./node/api-connection.ts";
import { readIdentity } from "./node/identity.ts";
import { newOwnNode } from "./node/own-node.ts";
import { newRuntimeHealth } from "./node/runtime-health.ts";
import { describePod, isMirrorPod, type NodePod } from "./pod/pod.ts";
import { PodDecisions } from "./pod/pod-decisions.ts";
import type { ResourceList } from "./pod/pod-resources.ts";
import { newAdmission } from "./pods/admission.ts";
import { newEndPod } from "./pods/end-pod.ts";
import { newPodIntake } from "./pods/intake.ts";
import { openPodRunner } from "./pods/open-pod-runner.ts";
import { newPodWorkers } from "./pods/pod-workers.ts";
import { newPreempt } from "./pods/preempt.ts";
import { newProbeManager } from "./probes/probe-manager.ts";
import { type OpenedManagers, openResourceManagers } from "./resources/open-resource-managers.ts";
import { startCgroups } from "./resources/start-cgroups.ts";
import { readMachineTopology } from "./resources/topology/machine-topology.ts";
import { pendingPods } from "./run-once.ts";
import { newCriClient } from "./runtime/cri-client.ts";
import { newLifecycleEvents } from "./runtime/lifecycle-events.ts";
import { podLogDirectory } from "./runtime/pod-logs.ts";
import type { ContainerRuntime } from "./runtime/runtime.ts";
import { newAgentMetrics, newProbeMetrics } from "./server/metrics.ts";
import { openServers } from "./server/open-servers.ts";
import { newLogMetrics, newPodTimes, timedCgroups } from "./server/pod-metrics.ts";
import { newVolumeMetrics } from "./server/volume-metrics.ts";
import { openNodeShutdown } from "./shutdown/open-node-shutdown.ts";
import { newApiObjects, noObjects } from "./sources/api-objects.ts";
import { followApiserver } from "./sources/apiserver.ts";
import { expectedSources } from "./sources/expected-sources.ts";
import { followStaticPods } from "./sources/static-sources.ts";
import { startPlugins } from "./start-plugins.ts";
import { openStatuses } from "./status/open-statuses.ts";
import { rejectedStatus } from "./status/pod-status.ts";
import { startUpkeep } from "./upkeep.ts";
import { systemMounter } from "./volumes/mount.ts";
import { openVolumes, startVolumes, volumesInUse } from "./volumes/open-volumes.ts";
import { newVolumeUsages } from "./volumes/volume-usage.ts";

export interface AgentOptions {
  config: AgentConfig;
  /** Undefined in standalone mode: static Pods only, no API server. */
  api: ClientConfig | undefined;
  featureGates: FeatureGates;
  /** Dynamic configuration (`--dynamic-config-dir`); undefined when not used. */
  dynamic?: DynamicConfig | undefined;
  clock: Clock;
  log: RootLogger;
  /** Container log directories; default `/var/log/pods` and `/var/log/containers`, overridden in tests. */
  podLogsDir?: string;
  containerLogsDir?: string;
  /** Overrides the runtime named in the configuration. */
  runtime?: ContainerRuntime;
}

/** A started agent. */
export interface RunningAgent {
  /** The bound ports; differ from the configuration when that is 0. */
  port: number;
  healthzPort: number;
  /** Wanted Pods that neither run nor have succeeded; undefined until all Pod sources have reported. */
  pending(): readonly string[] | undefined;
  /** Resolves when the agent has stopped; containers keep running. */
  stop(): Promise<void>;
}

const statusResyncMs = 10_000;

/**
 * Creates and connects the modules of the agent and starts them: first the machine's state, then the runtime and the node's
 * status, then the Pod workers, and at last the Pod sources.
 * @throws ConfigError when the machine does not match the configuration (swap, cgroups, certificates)
 */
export async function startAgent(options: AgentOptions): Promise<RunningAgent> {
  const { config, clock, log, featureGates } = options;
  // Common dependencies of almost every module.
  const basics = { config, featureGates, clock, log };
  const background = newBackground({ clock, log });
  const { signal } = background;
  const startedAt = clock.now();
  const podLogsDir = options.podLogsDir ?? "/var/log/pods";
  const containerLogsDir = options.containerLogsDir ?? "/var/log/containers";
  const identity = await readIdentity(config);
  const { nodeName } = identity;
  const podsDir = join(config.rootDir, "pods");
  for (const dir of [config.rootDir, podsDir]) await makeFolder(dir, 0o750);
  await makeFolder(podLogsDir, 0o755);
  const topology = await readMachineTopology(identity.machine.memoryBytes);

  // ---- container runtime and API server
  const metrics = newMetricsRegistry({ processMetrics: true, ...config.metrics });
  const decisions = new DecisionLog({ component: "kubelet", clock, registry: metrics });
  const podDecisions = new PodDecisions(decisions, () => clock.now());
  const probeMetrics = newMetricsRegistry(config.metrics);
  const agentMetrics = newAgentMetrics(metrics);
  agentMetrics.nodeName.labels(nodeName).set(1);
  const runtime =
    options.runtime ??
    newCriClient({
      endpoint: config.runtimeEndpoint,
      imageEndpoint: config.imageEndpoint || undefined,
      requestTimeoutMs: config.runtimeRequestTimeoutMs,
      onCall: (...call) => agentMetrics.runtimeCall(...call),
    });
  const runtimeHealth = newRuntimeHealth({ runtime, clock });
  const api = options.api && newApiConnection({ api: options.api, config, nodeName, metrics, clock, log });
  const tell = newAgentEvents({ recorder: api?.recorder, nodeName, log, decisions: podDecisions });
  const events = newLifecycleEvents({
    ...basics,
    runtime,
    onChange: (uid) => workers.wake(uid),
    onRelist: (ms) => agentMetrics.relisted(ms, clock.now()),
  });

  // ---- node
  const appArmor = await readAppArmor(featureGates.enabled("AppArmor"));
  let opened: OpenedManagers | undefined;
  const node = newOwnNode({
    ...basics,
    identity,
    api,
    runtime,
    runtimeHealth,
    events,
    problems: () => [csi?.problem(), shutdown?.problem()],
    devices: () => opened?.devices.amounts(),
    volumesInUse: () => volumesInUse(openedVolumes),
    tell,
    appArmor: appArmor.enabled,
    metrics,
  });
  const objects = api === undefined ? noObjects : newApiObjects(api.client, clock);
  const openedVolumes = await openVolumes({
    ...basics,
    nodeName,
    node,
    podsDir,
    objects,
    api,
    tellPod: tell.pod,
    metrics,
    mounter: systemMounter,
    onCall: (...call) => agentMetrics.csiCall(...call),
  });
  const { csi, quotas, volumes } = openedVolumes;
  const activePods = (): NodePod[] => sources.list().filter((pod) => !isMirrorPod(pod) && intake.isActive(pod));
  const shutdown = openNodeShutdown({
    ...basics,
    activePods,
    endPod: (pod, verdict, graceSeconds) => workers.evict(pod.metadata.uid, verdict, graceSeconds),
    tellNode: tell.node,
    onChange: () => node.hurry(),
  });
  const { capacity = {}, allocatable: atFirst = {} } = await node.status(undefined);
  const allocatable = (): ResourceList => node.known().status?.allocatable ?? atFirst;

  opened = asConfigError(() =>
    openResourceManagers({
      ...basics,
      ...identity,
      topology,
      capacity,
      runtime,
      activePods: () => (intake.sources.allSynced() ? intake.sources.list().filter((pod) => intake.isActive(pod)) : undefined),
      onDevicesChange: () => node.hurry(),
      onPluginRegistered: (resource) => agentMetrics.pluginRegistrations.labels(resource).inc(),
      onDevicesAllocated: (resource, ms) => agentMetrics.deviceAllocation.labels(resource).observe(ms / 1000),
    }),
  );
  const { managers, cpu, memory, devices } = opened;

  // ---- dependencies of Pods
  const started = await startCgroups({
    ...basics,
    ...identity,
    capacity,
    tell,
    signal,
  });
  const cgroups = timedCgroups(started, metrics, clock);
  const times = newPodTimes(metrics, clock);
  const { status, mirrors } = openStatuses({ api, node, clock, log });
  const probes = newProbeManager({
    ...basics,
    runtime,
    event: tell.pod,
    statusOf: (uid) => status.get(uid),
    onChange: (uid) => workers.wake(uid),
    grpcEnabled: featureGates.enabled("GRPCContainerProbe"),
    onProbe: newProbeMetrics(probeMetrics),
  });

  // ---- Pod workers and admission
  const runner = await openPodRunner({
    ...basics,
    identity,
    api,
    runtime,
    allocatable,
    volumes,
    objects,
    cgroups,
    probes,
    status,
    mirrors,
    mounter: systemMounter,
    event: tell.pod,
    podLogsDir,
    containerLogsDir,
    resources: { ...managers, accessOf: (...args) => devices.accessOf(...args) },
    onStart: (...start) => agentMetrics.started(...start),
    runtimeName: () => runtimeHealth.version()?.name,
    networkProblem: runtimeHealth.networkProblem,
    appArmor,
  });
  const workers = newPodWorkers({
    ...basics,
    runner,
    syncFrequencyMs: config.syncFrequencyMs,
    onStarted: times.started,
    onWorked(pod, work, ms) {
      times.worked(work, ms);
      times.synced(pod, status.get(pod.metadata.uid)?.phase);
    },
    onSynced: (pod) => podDecisions.synced(pod, status.get(pod.metadata.uid)),
    onTerminating: (pod, graceSeconds) => podDecisions.terminating(pod, graceSeconds),
    onRetry: (...retry) => podDecisions.failed(...retry),
    onFailure: (pod, err) =>
      tell.pod(pod, undefined, "Warning", "FailedSync", `error determining status: ${(err as Error).message}`),
    onGone: async (pod, { runtimeOnly, wantedAgain }) => {
      times.gone(pod.metadata.uid);
      podDecisions.gone(pod);
      if (runtimeOnly) return;
      // the new Pod has the same UID and must not start from the old status
      if (wantedAgain) return status.forget(pod.metadata.uid);
      // Not awaited: the API server may be unavailable for long, and the worker is done.
      void status.finish(pod);
    },
  });
  const endPod = newEndPod({ workers, tell, clock });
  const preempt = newPreempt({ endPod, onPreempted: (resource) => agentMetrics.preemptions.labels(resource).inc(), log });
  const intake = newPodIntake({
    expected: expectedSources(config, api !== undefined),
    workers,
    status,
    admit: newAdmission({ config, nodeName, node, allocatable, managers, devices, shutdown, preempt }),
    onRejected: (pod, rejection) => {
      podDecisions.rejected(pod, rejection.reason, rejection.message);
      tell.pod(pod, undefined, "Warning", rejection.reason, rejection.message);
      status.set(pod, rejectedStatus(pod, rejection, clock.now()));
    },
    onDuplicate: (pod, source) => {
      const message = `Error validating pod ${describePod(pod)} from ${source} due to duplicate pod name ${JSON.stringify(pod.metadata.name)}, ignoring`;
      tell.pod(pod, undefined, "Warning", "FailedValidation", message);
    },
  });
  const { sources } = intake;

  const usages = newVolumeUsages({
    pods: () => sources.list().filter((pod) => intake.isActive(pod)),
    volumes,
    tellPod: tell.pod,
    clock,
    log,
  });
  newVolumeMetrics(metrics, { pods: sources.list, usages });
  newLogMetrics(metrics, sources.list, (pod) => podLogDirectory(podLogsDir, pod));

  // ---- start
  node.watchRuntime(background);
  background.add(events.run(signal));
  await startPlugins({
    ...basics,
    background,
    managers: { cpu, memory, devices },
    csiHandler: csi?.handler,
    activePods,
    metrics,
    onResourcesRequest: (version) => agentMetrics.podResourcesRequests.labels(version).inc(),
  });
  await shutdown?.start(signal).catch((err) => log.error("Failed to start node shutdown manager", err));
  const servers = await openServers({
    ...basics,
    identity,
    api,
    runtime,
    metrics,
    probeMetrics,
    podLogsDir,
    cgroupParentOf: (pod) => cgroups.parentOf(pod),
    intake,
    status,
    usages,
    events,
    startedAt,
    signal,
  });

  node.join(background);
  const resolvProblem = config.resolvConf === "" ? undefined : await checkResolvConf(config.resolvConf, config.clusterDomain);
  if (resolvProblem !== undefined) tell.node("Warning", "CheckLimitsForResolvConf", resolvProblem);
  background.add(
    watchSystemOoms(
      {
        clock,
        log,
        onOom: ({ process, pid }) =>
          tell.node("Warning", "SystemOOM", `System OOM encountered, victim process: ${process}, pid: ${pid}`),
      },
      background.signal,
    ),
  );
  startVolumes(openedVolumes, background);
  options.dynamic?.follow({ api: config.runOnce ? undefined : api, nodeName, tell, metrics, background });
  if (api !== undefined) {
    followApiserver(api.pods, sources, clock);
    api.informers.start(signal);
    background.add(api.pods.waitForSync(signal).then(() => sources.markSynced("api")));
    const recipient = kubeletRecipient(nodeName);
    background.add(answerQuestions({ client: api.heartbeat, recipient, decisions, clock, log, signal }));
    background.every(statusResyncMs, "status resync", () => status.resync());
  }
  followStaticPods(config, { sources, nodeName, clock, log }, background);

  startUpkeep({
    ...basics,
    background,
    runtime,
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
    endPod,
    managers,
    usages,
    quotas,
    onLook: agentMetrics.running,
    onEvicted: agentMetrics.evicted,
    onPressureChange: (...args) => node.setPressure(...args),
  });
  log.info("Started kubelet", { node: nodeName, port: servers.port });

  return {
    port: servers.port,
    healthzPort: servers.healthzPort,
    pending: () => pendingPods(sources, status),
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
