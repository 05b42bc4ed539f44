import { join } from "node:path";
import type { ClientConfig } from "@coxswain/apimachinery/client/config";
import { answerQuestions } from "@coxswain/apimachinery/decisions/answer-questions";
import { DecisionLog, decisionLimitBytes } from "@coxswain/apimachinery/decisions/decision-log";
import { kubeletRecipient } from "@coxswain/apimachinery/decisions/question";
import type { FeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { SetOnce } from "@coxswain/apimachinery/objects/meta/set-once";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { makeFolder } from "@coxswain/apimachinery/process/files/make-folder";
import type { RootLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import type { AgentConfig } from "./agent-config.ts";
import { newBackground } from "./background.ts";
import { asConfigError } from "./config-error.ts";
import type { DynamicConfig } from "./dynamic-config/dynamic-config.ts";
import { reportResolvConf } from "./environment/check-resolv-conf.ts";
import { type AgentEvents, newAgentEvents } from "./events.ts";
import { readAppArmor } from "./host/app-armor.ts";
import { watchSystemOoms } from "./host/kernel-log.ts";
import { newApiConnection } from "./node/api-connection.ts";
import { readIdentity } from "./node/identity.ts";
import { OwnNode } from "./node/own-node.ts";
import { newRuntimeHealth } from "./node/runtime-health.ts";
import { isMirrorPod, type NodePod } from "./pod/pod.ts";
import { PodDecisions } from "./pod/pod-decisions.ts";
import type { ResourceList } from "./pod/pod-resources.ts";
import { newAdmission } from "./pods/admission.ts";
import { newEndPod } from "./pods/end-pod.ts";
import { newPodIntake, type PodIntake, reportDuplicate } from "./pods/intake.ts";
import { type OpenRunnerOptions, openPodRunner } from "./pods/open-pod-runner.ts";
import type { PodRunner } from "./pods/pod-runner.ts";
import { newPodWorkers, type PodWorkers } from "./pods/pod-workers.ts";
import { newPreempt } from "./pods/preempt.ts";
import { ProbeManager } from "./probes/probe-manager.ts";
import { type OpenedManagers, openResourceManagers } from "./resources/open-resource-managers.ts";
import { startCgroups } from "./resources/start-cgroups.ts";
import { readMachineTopology } from "./resources/topology/machine-topology.ts";
import { pendingPods } from "./run-once.ts";
import { newCriClient } from "./runtime/cri-client.ts";
import { newLifecycleEvents } from "./runtime/lifecycle-events.ts";
import { podLogDirectory } from "./runtime/pod-logs.ts";
import type { ContainerRuntime } from "./runtime/runtime.ts";
import type { Listening } from "./server/listen.ts";
import { newAgentMetrics, newProbeMetrics } from "./server/metrics.ts";
import { openServers } from "./server/open-servers.ts";
import { newEphemeralContainerMetric, newLogMetrics, newPodTimes, timedCgroups } from "./server/pod-metrics.ts";
import { newVolumeMetrics } from "./server/volume-metrics.ts";
import type { NodeShutdown } from "./shutdown/node-shutdown.ts";
import { openNodeShutdown } from "./shutdown/open-node-shutdown.ts";
import { newApiObjects, noObjects } from "./sources/api-objects.ts";
import { followApiserver } from "./sources/apiserver.ts";
import { expectedSources } from "./sources/expected-sources.ts";
import { followStaticPods } from "./sources/static-sources.ts";
import { startPlugins } from "./start-plugins.ts";
import { openStatuses } from "./status/open-statuses.ts";
import { rejectedStatus } from "./status/pod-status.ts";
import type { StatusManager } from "./status/status-manager.ts";
import { startUpkeep } from "./upkeep.ts";
import { systemMounter } from "./volumes/mount.ts";
import { type OpenedVolumes, openVolumes, startVolumes, volumesInUse } from "./volumes/open-volumes.ts";
import { newVolumeUsages } from "./volumes/volume-usage.ts";

interface AgentOptions {
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
  /** Default `/dev/kmsg`; overridden in tests. */
  kernelLog?: string;
  /** Overrides the runtime named in the configuration. */
  runtime?: ContainerRuntime;
}

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
  const links = new Links();
  const foundation = await openFoundation(options);
  const runtime = openRuntime(options, foundation, links);
  const machine = await openMachine(foundation, runtime, links);
  const pods = await openPods(foundation, runtime, machine, links);
  const { background, log, nodeName } = foundation;
  const servers = await startModules(options, foundation, runtime, machine, pods);
  log.info("Started kubelet", { node: nodeName, port: servers.port });
  return {
    port: servers.port,
    healthzPort: servers.healthzPort,
    pending: () => pendingPods(pods.intake.sources, pods.status),
    async stop() {
      const stopped = background.stop();
      pods.workers.stop();
      pods.status.stop();
      await servers.close();
      await stopped;
      runtime.api?.close();
      if (options.runtime === undefined) runtime.runtime.close();
    },
  };
}

/** Modules that are created after those that call them. They are set before the agent starts to run. */
class Links {
  readonly volumes = new SetOnce<OpenedVolumes>("volumes");
  readonly shutdown = new SetOnce<NodeShutdown | undefined>("the node's shutdown");
  readonly managers = new SetOnce<OpenedManagers>("resource managers");
  readonly workers = new SetOnce<PodWorkers>("pod workers");
  readonly intake = new SetOnce<PodIntake>("the intake of pods");
}

/** Active Pods without those of the API server that stand for static Pods. */
const localPods = (intake: PodIntake): NodePod[] =>
  intake.sources.list().filter((pod) => !isMirrorPod(pod) && intake.isActive(pod));

/** Active Pods of all sources; undefined until all Pod sources have reported. */
const syncedPods = (intake: PodIntake): NodePod[] | undefined =>
  intake.sources.allSynced() ? intake.sources.list().filter((pod) => intake.isActive(pod)) : undefined;

type Foundation = Awaited<ReturnType<typeof openFoundation>>;

/** Creates what almost every module uses: machine properties, the agent's folders, metrics and decisions. */
async function openFoundation(options: AgentOptions) {
  const { config, clock, log, featureGates } = options;
  const startedAt = clock.now();
  const podLogsDir = options.podLogsDir ?? "/var/log/pods";
  const containerLogsDir = options.containerLogsDir ?? "/var/log/containers";
  const identity = await readIdentity(config);
  const podsDir = join(config.rootDir, "pods");
  for (const dir of [config.rootDir, podsDir]) await makeFolder(dir, 0o750);
  await makeFolder(podLogsDir, 0o755);
  const topology = await readMachineTopology(identity.machine.memoryBytes);
  const turns = new Turns();
  const metrics = newMetricsRegistry({ processMetrics: true, turns, ...config.metrics });
  const decisions = new DecisionLog({
    component: "kubelet",
    clock,
    registry: metrics,
    limitBytes: decisionLimitBytes(process.env),
  });
  const agentMetrics = newAgentMetrics(metrics);
  agentMetrics.nodeName.labels(identity.nodeName).set(1);
  return {
    basics: { config, featureGates, clock, log },
    ...{ config, featureGates, clock, log, identity, topology, podsDir, podLogsDir, containerLogsDir },
    ...{ turns, metrics, agentMetrics, decisions },
    nodeName: identity.nodeName,
    probeMetrics: newMetricsRegistry({ turns, ...config.metrics }),
    podDecisions: new PodDecisions(decisions, () => clock.now()),
    background: newBackground({ clock, log }),
    startedAt,
  };
}

type Runtime = ReturnType<typeof openRuntime>;

/** Creates the clients of the container runtime and the API server, and the recorder of events. */
function openRuntime(options: AgentOptions, foundation: Foundation, links: Links) {
  const { basics, config, clock, log, nodeName, metrics, agentMetrics } = foundation;
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
  const notify = newAgentEvents({ recorder: api?.recorder, nodeName, log, decisions: foundation.podDecisions });
  const events = newLifecycleEvents({
    ...basics,
    runtime,
    onChange: (uid) => links.workers.get().wake(uid),
    onRelist: (ms) => agentMetrics.relisted(ms, clock.now()),
  });
  return { runtime, runtimeHealth, api, notify, events };
}

type Machine = Awaited<ReturnType<typeof openMachine>>;

/** Creates the modules for the Node and for what its Pods use: volumes, CPUs, memory, devices, cgroups. */
async function openMachine(foundation: Foundation, { runtime, runtimeHealth, api, notify, events }: Runtime, links: Links) {
  const { basics, clock, featureGates, identity, nodeName, podsDir, topology, metrics, agentMetrics, background, turns } =
    foundation;
  const appArmor = await readAppArmor(featureGates.enabled("AppArmor"));
  const node = new OwnNode({
    ...basics,
    identity,
    api,
    runtime,
    runtimeHealth,
    events,
    problems: () => [links.volumes.get().csi?.problem(), links.shutdown.get()?.problem()],
    devices: () => links.managers.current?.devices.amounts(),
    volumesInUse: () => volumesInUse(links.volumes.get()),
    notify,
    appArmor: appArmor.enabled,
    metrics,
  });
  const objects = api === undefined ? noObjects : newApiObjects(api.client, clock);
  const volumes = await openVolumes({
    ...basics,
    nodeName,
    node,
    podsDir,
    objects,
    api,
    reportPodEvent: notify.pod,
    metrics,
    mounter: systemMounter,
    turns,
    onCall: (...call) => agentMetrics.csiCall(...call),
  });
  links.volumes.set(volumes);
  const shutdown = openNodeShutdown({
    ...basics,
    activePods: () => localPods(links.intake.get()),
    endPod: (pod, verdict, graceSeconds) => links.workers.get().evict(pod.metadata.uid, verdict, graceSeconds),
    reportNodeEvent: notify.node,
    onChange: () => node.hurry(),
  });
  links.shutdown.set(shutdown);
  const { capacity = {}, allocatable: atFirst = {} } = await node.status(undefined);
  const managers = asConfigError(() =>
    openResourceManagers({
      ...basics,
      turns,
      ...identity,
      topology,
      capacity,
      runtime,
      activePods: () => syncedPods(links.intake.get()),
      onDevicesChange: () => node.hurry(),
      onPluginRegistered: (resource) => agentMetrics.pluginRegistrations.labels(resource).inc(),
      onDevicesAllocated: (resource, ms) => agentMetrics.deviceAllocation.labels(resource).observe(ms / 1000),
    }),
  );
  links.managers.set(managers);
  const started = await startCgroups({
    ...basics,
    ...identity,
    capacity,
    notify,
    signal: background.signal,
  });
  const cgroups = timedCgroups(started, metrics, clock);
  const allocatable = (): ResourceList => node.known().status?.allocatable ?? atFirst;
  return { appArmor, node, objects, volumes, shutdown, managers, cgroups, allocatable };
}

type Pods = Awaited<ReturnType<typeof openPods>>;

/** Creates the modules for Pods: statuses, probes, admission and workers. */
async function openPods(foundation: Foundation, parts: Runtime, machine: Machine, links: Links) {
  const { basics, config, clock, log, featureGates, nodeName, podLogsDir, metrics, agentMetrics, probeMetrics, podDecisions } =
    foundation;
  const { runtime, api, notify } = parts;
  const { node, volumes, shutdown, managers, allocatable } = machine;
  const { status, mirrors } = openStatuses({ api, node, clock, log });
  const probes = new ProbeManager({
    ...basics,
    turns: foundation.turns,
    runtime,
    event: notify.pod,
    statusOf: (uid) => status.get(uid),
    onChange: (uid) => links.workers.get().wake(uid),
    grpcEnabled: featureGates.enabled("GRPCContainerProbe"),
    onProbe: newProbeMetrics(probeMetrics),
  });
  const runner = await openRunner(foundation, parts, machine, { status, mirrors, probes });
  const workers = openWorkers(foundation, notify, runner, status);
  links.workers.set(workers);
  const endPod = newEndPod({ workers, notify, clock });
  const preempt = newPreempt({ endPod, onPreempted: (resource) => agentMetrics.preemptions.labels(resource).inc(), log });
  const intake = newPodIntake({
    expected: expectedSources(config, api !== undefined),
    workers,
    status,
    admit: newAdmission({
      ...{ config, nodeName, node, allocatable, shutdown, preempt },
      managers: managers.managers,
      devices: managers.devices,
    }),
    onRejected: (pod, rejection) => {
      podDecisions.rejected(pod, rejection.reason, rejection.message);
      notify.pod(pod, undefined, "Warning", rejection.reason, rejection.message);
      status.set(pod, rejectedStatus(pod, rejection, clock.now()));
    },
    onDuplicate: (pod, source) => reportDuplicate(notify, pod, source),
  });
  links.intake.set(intake);
  const usages = newVolumeUsages({
    pods: () => intake.sources.list().filter((pod) => intake.isActive(pod)),
    volumes: volumes.volumes,
    reportPodEvent: notify.pod,
    clock,
    log,
  });
  newVolumeMetrics(metrics, { pods: () => intake.sources.list(), usages });
  newEphemeralContainerMetric(metrics, () => intake.sources.list());
  newLogMetrics(
    metrics,
    () => intake.sources.list(),
    (pod) => podLogDirectory(podLogsDir, pod),
  );
  return { status, mirrors, runner, workers, endPod, intake, usages };
}

/** @param own modules for Pods that were created earlier */
function openRunner(
  { basics, identity, agentMetrics, podLogsDir, containerLogsDir, turns }: Foundation,
  { runtime, runtimeHealth, api, notify }: Runtime,
  { volumes, objects, cgroups, managers, allocatable, appArmor }: Machine,
  own: Pick<OpenRunnerOptions, "status" | "mirrors" | "probes">,
): Promise<PodRunner> {
  return openPodRunner({
    ...basics,
    ...own,
    identity,
    api,
    runtime,
    allocatable,
    volumes: volumes.volumes,
    objects,
    cgroups,
    mounter: systemMounter,
    turns,
    event: notify.pod,
    podLogsDir,
    containerLogsDir,
    resources: { ...managers.managers, accessOf: (...args) => managers.devices.accessOf(...args) },
    onStart: (...start) => agentMetrics.started(...start),
    runtimeName: () => runtimeHealth.version()?.name,
    networkProblem: () => runtimeHealth.networkProblem(),
    appArmor,
  });
}

function openWorkers(
  { basics, config, clock, metrics, podDecisions }: Foundation,
  notify: AgentEvents,
  runner: PodRunner,
  status: StatusManager,
): PodWorkers {
  const times = newPodTimes(metrics, clock);
  return newPodWorkers({
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
    onFailure: (pod, err) => notify.pod(pod, undefined, "Warning", "FailedSync", `error determining status: ${messageOf(err)}`),
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
}

/** Starts everything; the sources of Pods come last. */
async function startModules(
  { dynamic, kernelLog }: AgentOptions,
  foundation: Foundation,
  runtime: Runtime,
  machine: Machine,
  pods: Pods,
): Promise<Listening> {
  const { basics, config, clock, log, nodeName, background, metrics, agentMetrics } = foundation;
  const { api, notify, events } = runtime;
  const { node, volumes, shutdown, managers } = machine;
  const { cpu, memory, devices } = managers;
  node.watchRuntime(background);
  background.add(events.run(background.signal));
  await startPlugins({
    ...basics,
    background,
    managers: { cpu, memory, devices },
    csiHandler: volumes.csi?.handler,
    activePods: () => localPods(pods.intake),
    metrics,
    onResourcesRequest: (version) => agentMetrics.podResourcesRequests.labels(version).inc(),
  });
  await shutdown?.start(background.signal).catch((err) => log.error("Failed to start node shutdown manager", err));
  const servers = await serveRequests(foundation, runtime, machine, pods);
  node.join(background);
  await reportResolvConf(config, notify);
  background.add(watchSystemOoms({ path: kernelLog, clock, log, reportNodeEvent: notify.node }, background.signal));
  startVolumes(volumes, background);
  dynamic?.follow({ api: config.runOnce ? undefined : api, nodeName, notify, metrics, background });
  followSources(foundation, runtime, pods);
  keepUp(foundation, runtime, machine, pods);
  return servers;
}

function serveRequests(
  { basics, identity, background, turns, metrics, probeMetrics, podLogsDir, startedAt }: Foundation,
  { runtime, api, events }: Runtime,
  { cgroups }: Machine,
  { intake, status, usages }: Pods,
): Promise<Listening> {
  return openServers({
    ...basics,
    identity,
    api,
    turns,
    runtime,
    metrics,
    probeMetrics,
    podLogsDir,
    cgroupParentOf: (pod) => cgroups.parentOf(pod),
    cgroupOfPods: cgroups.ofPods,
    intake,
    status,
    usages,
    events,
    startedAt,
    signal: background.signal,
  });
}

/** Starts the sources of Pods, and what else is read from the API server. */
function followSources(
  { config, clock, log, nodeName, background, turns, decisions }: Foundation,
  { api }: Runtime,
  { status, intake: { sources } }: Pods,
): void {
  const { signal } = background;
  if (api !== undefined) {
    followApiserver(api.pods, sources, clock);
    api.informers.start(signal);
    background.add(api.pods.waitForSync(signal).then(() => sources.markSynced("api")));
    const recipient = kubeletRecipient(nodeName);
    background.add(answerQuestions({ client: api.heartbeat, recipient, decisions, clock, turns, log, signal }));
    background.every(statusResyncMs, "status resync", () => status.resync());
  }
  followStaticPods(config, { sources, nodeName, clock, turns, log }, background);
}

/** Starts the periodic tasks. */
function keepUp(
  { basics, background, agentMetrics, podLogsDir, containerLogsDir }: Foundation,
  { runtime, notify, events }: Runtime,
  { node, volumes, managers, cgroups }: Machine,
  { mirrors, runner, workers, endPod, intake, usages }: Pods,
): void {
  startUpkeep({
    ...basics,
    background,
    runtime,
    intake,
    workers,
    runner,
    events,
    volumes: volumes.volumes,
    cgroups,
    mirrors,
    podLogsDir,
    containerLogsDir,
    notify,
    endPod,
    managers: managers.managers,
    usages,
    quotas: volumes.quotas,
    onLook: agentMetrics.running,
    onEvicted: agentMetrics.evicted,
    onEvictionDue: agentMetrics.evictionDue,
    onPressureChange: (...args) => node.setPressure(...args),
  });
}
