import { mkdir } from "node:fs/promises";
import type { Clock } from "@coxswain/apimachinery/clock/clock";
import { isNotFound } from "@coxswain/apimachinery/errors/predicates";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import { formatDuration, parseTime } from "@coxswain/apimachinery/meta/time";
import type { PodStatus, Secret, Service } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { type DnsSettings, podDns } from "../environment/dns.ts";
import type { DownwardContext } from "../environment/downward-api-env.ts";
import { environmentOf } from "../environment/env-vars.ts";
import { hostnameAndDomain, nodenameOf } from "../environment/hostname.ts";
import type { ProbeManager } from "../probes/probe-manager.ts";
import type { Cgroups } from "../resources/cgroups.ts";
import { containerResources } from "../resources/container-resources.ts";
import type { DeviceManager } from "../resources/devices/device-manager.ts";
import type { ResourceList } from "../resources/pod-resources.ts";
import type { ResourceManagers } from "../resources/resource-managers.ts";
import { ContainerError } from "../runtime/container-error.ts";
import { type ContainerDependencies, killContainer, removeContainer, startContainer } from "../runtime/containers.ts";
import type { CriInput } from "../runtime/cri-schema.ts";
import type { ImagePuller } from "../runtime/images.ts";
import { containerHash } from "../runtime/labels.ts";
import { podLogDirectory, removePodLogs } from "../runtime/pod-logs.ts";
import { type PodRecord, podIps, readPodRecord } from "../runtime/pod-record.ts";
import { isRuntimeNotFound } from "../runtime/runtime.ts";
import { sandboxConfig } from "../runtime/sandbox.ts";
import type { PodObjects } from "../sources/pod-objects.ts";
import { podStatus, terminatedStatus } from "../status/pod-status.ts";
import type { StatusManager } from "../status/status-manager.ts";
import type { Mounter } from "../volumes/mount.ts";
import { ClaimError, type SetUpVolume, VolumeError, VolumeWaits } from "../volumes/volume.ts";
import type { VolumeFailure, VolumeManager } from "../volumes/volume-manager.ts";
import { type Backoff, newBackoff } from "./backoff.ts";
import { containerMounts } from "./container-options.ts";
import { type AnyContainer, type ContainerKind, describePod, findContainer, type NodePod } from "./pod.ts";
import { type PodActions, planPod } from "./sync-pod.ts";

export interface PodRunnerOptions {
  containers: ContainerDependencies;
  images: ImagePuller;
  volumes: VolumeManager;
  /** `--keep-terminated-pod-volumes`: those of ended Pods stay mounted until the Pod is deleted. */
  keepTerminatedPodVolumes?: boolean;
  objects: PodObjects;
  cgroups: Cgroups;
  probes: ProbeManager;
  status: StatusManager;
  mounter: Mounter;
  clock: Clock;
  log: Logger;
  node: NodeFacts;
  /** What containers get to themselves; absent where nobody gives them anything. */
  resources?: Pick<ResourceManagers, "placementOf" | "started"> & Pick<DeviceManager, "accessOf">;
  dns: () => DnsSettings;
  /** Services of the whole cluster; undefined while they are not known yet. */
  services: () => readonly Service[] | undefined;
  /** What is wrong with the network of Pods, undefined when it is ready. */
  networkProblem: () => string | undefined;
  runtimeHandler: (pod: NodePod) => Promise<string>;
  /** Told of each start of a Pod's sandbox and of a container, and of what it failed with. */
  onStart?: (what: "pod" | ContainerKind, failure?: string) => void;
  /** Called before anything is made for a Pod: mirror Pods of static ones. */
  prepare?: (pod: NodePod) => Promise<void>;
}

export interface NodeFacts {
  name: string;
  ips(): readonly string[];
  allocatable(): ResourceList;
  memoryCapacityBytes: number;
  cfsQuota: boolean;
  cfsPeriodUs: number;
  pageSizes: readonly string[];
  clusterDomain: string;
}

export type SyncOutcome =
  /** Everything of the Pod has ended and will not start again. */
  | { kind: "ended" }
  /** `againMs` is when something is due that nobody will call for: the Pod's deadline. */
  | { kind: "synced"; againMs?: number }
  /** Something could not be done; `retryMs` is when to try again, where that is not the usual time. */
  | { kind: "failed"; error: Error; retryMs?: number };

export interface PodRunner {
  /** Brings the Pod to what it should be. Never runs twice at once for a Pod; `signal` is aborted when the Pod has to end. */
  sync(pod: NodePod, signal: AbortSignal): Promise<SyncOutcome>;
  /** Ends everything that runs of a Pod. @throws Error when something still runs. */
  terminate(pod: NodePod, options: TerminateOptions): Promise<void>;
  /** Takes away what an ended Pod has no use for; for a deleted one everything. @throws Error when something is left. */
  clean(pod: NodePod, options: { deleted: boolean; runtimeOnly: boolean }): Promise<void>;
  collect(): void;
}

export interface TerminateOptions {
  /** Known to the runtime alone: there is no specification and nobody to tell. */
  runtimeOnly: boolean;
  graceSecondsOverride?: number | undefined;
  /** What the status becomes, when it is not for the containers to say: evicted, past its deadline. */
  verdict?: PodVerdict | undefined;
}

export interface PodVerdict {
  reason: string;
  message: string;
}

const crashLoopInitialMs = 10_000;
const crashLoopMaxMs = 300_000;
const networkRetryMs = 1_000;
const volumeRetryInitialMs = 500;
const volumeRetryMaxMs = 122_000;
/** How often to look whether a volume is attached by now. */
const volumeAttachCheckMs = 1_000;
/** After so long without its volumes the user is told all of what is missing. */
const volumeWaitMs = 123_000;

/** Source: pkg/kubelet/kubelet.go syncPod, kuberuntime_manager.go SyncPod */
export function newPodRunner(options: PodRunnerOptions): PodRunner {
  const { clock, log, status, probes, volumes, containers } = options;
  const { runtime } = containers;
  const crashLoops: Backoff = newBackoff({ initialMs: crashLoopInitialMs, maxMs: crashLoopMaxMs, clock });
  const volumeRetries: Backoff = newBackoff({ initialMs: volumeRetryInitialMs, maxMs: volumeRetryMaxMs, clock });
  const volumesMissingSince = new Map<string, number>();
  const startFailures = new Map<string, Map<string, { reason: string; message: string }>>();
  const invalidNamesTold = new Set<string>();

  const read = (pod: NodePod): Promise<PodRecord> => {
    const { uid, name, namespace } = pod.metadata;
    return readPodRecord(runtime, { uid, name, namespace });
  };

  function statusOf(pod: NodePod, record: PodRecord): PodStatus {
    return podStatus({
      pod,
      record,
      previous: status.get(pod.metadata.uid),
      hostIps: options.node.ips(),
      probes: probes.results,
      startFailure: (container) => startFailures.get(pod.metadata.uid)?.get(container),
      runtimeName: "containerd",
      now: clock.now(),
    });
  }

  function downwardContext(ips: readonly string[]): DownwardContext {
    return { nodeName: options.node.name, hostIps: options.node.ips(), podIps: ips, allocatable: options.node.allocatable() };
  }

  async function sync(pod: NodePod, signal: AbortSignal): Promise<SyncOutcome> {
    const record = await read(pod);
    const made = statusOf(pod, record);
    const verdict = deadlineVerdict(pod, made, clock.now());
    if (verdict !== undefined && !isTerminal(made)) {
      containers.event(pod, undefined, "Normal", "DeadlineExceeded", verdict.message);
      status.set(pod, { ...made, phase: "Failed", ...verdict });
      return { kind: "ended" };
    }
    status.set(pod, made);
    if (isTerminal(made)) return { kind: "ended" };

    const problem = options.networkProblem();
    if (problem !== undefined && !pod.spec.hostNetwork) {
      containers.event(pod, undefined, "Warning", "NetworkNotReady", `network is not ready: ${problem}`);
      return { kind: "failed", error: new Error(`network is not ready: ${problem}`), retryMs: networkRetryMs };
    }
    await options.prepare?.(pod);
    await options.cgroups.ensure(pod);
    await mkdir(volumes.podDir(pod.metadata.uid), { recursive: true, mode: 0o750 });

    const ips = pod.spec.hostNetwork ? options.node.ips() : podIps(record);
    const { volumes: mounted, failures } = await volumes.setUp(pod, downwardContext(ips));
    if (failures.length > 0) return volumesFailed(pod, failures, record);
    volumesMissingSince.delete(pod.metadata.uid);
    volumeRetries.forget(pod.metadata.uid);
    probes.add(pod);

    const outcome = await act(pod, record, planPod(pod, record, probes.results), mounted, signal);
    if (outcome.changed) status.set(pod, statusOf(pod, await read(pod)));
    if (outcome.errors.length > 0) {
      return { kind: "failed", error: new Error(`error syncing pod: ${outcome.errors.join(", ")}`) };
    }
    const dueMs = deadlineDueMs(pod, made, clock.now());
    return dueMs === undefined ? { kind: "synced" } : { kind: "synced", againMs: dueMs };
  }

  function volumesFailed(pod: NodePod, failures: readonly VolumeFailure[], record: PodRecord): SyncOutcome {
    const { uid } = pod.metadata;
    const warn = (reason: string, message: string): void => containers.event(pod, undefined, "Warning", reason, message);
    for (const { volume, message, cause } of failures) {
      if (cause instanceof ClaimError || cause instanceof VolumeWaits) continue;
      const [step, name] =
        cause instanceof VolumeError ? [cause.step, cause.volume] : (["MountVolume.SetUp failed", volume] as const);
      const reason = step.startsWith("MapVolume") ? "FailedMapVolume" : "FailedMount";
      warn(reason, `${step} for volume ${JSON.stringify(name)} : ${message}`);
    }
    const since = volumesMissingSince.get(uid) ?? clock.now();
    volumesMissingSince.set(uid, since);
    const missing = failures.map(({ volume }) => volume).join(" ");
    const all = (pod.spec.volumes ?? []).map((volume) => volume.name).join(" ");
    const claims = failures.filter(({ cause }) => cause instanceof ClaimError).map(({ message }) => message);
    const why = claims.length > 0 ? claims.join("; ") : "timed out waiting for the condition";
    const text = `Unable to attach or mount volumes: unmounted volumes=[${missing}], unattached volumes=[${all}]: ${why}`;
    if (claims.length > 0) warn("FailedMount", text);
    else if (clock.now() - since > volumeWaitMs) {
      warn("FailedMount", text);
      volumesMissingSince.set(uid, clock.now());
    }
    // Containers that run keep what they have; only the contents are not brought up to date.
    if (record.containers.some((container) => container.state === "running")) probes.add(pod);
    if (failures.every(({ cause }) => cause instanceof VolumeWaits)) {
      return { kind: "failed", error: new Error(text), retryMs: volumeAttachCheckMs };
    }
    volumeRetries.next(uid, clock.now());
    return { kind: "failed", error: new Error(text), retryMs: volumeRetries.current(uid) };
  }

  async function act(
    pod: NodePod,
    record: PodRecord,
    plan: PodActions,
    mounted: ReadonlyMap<string, SetUpVolume>,
    signal: AbortSignal,
  ): Promise<{ changed: boolean; errors: string[] }> {
    const outcome = { changed: false, errors: [] as string[] };
    const failures = startFailures.get(pod.metadata.uid) ?? new Map<string, { reason: string; message: string }>();
    startFailures.set(pod.metadata.uid, failures);
    const ip = podIps(record)[0] ?? "";

    if (plan.createSandbox && plan.sandboxId !== undefined) {
      const message = "Pod sandbox changed, it will be killed and re-created.";
      containers.event(pod, undefined, "Normal", "SandboxChanged", message);
    }
    if (plan.killPod) {
      if (record.sandboxes.some((sandbox) => sandbox.ready) || record.containers.some(isAlive)) {
        outcome.changed = true;
        await killEverything(pod, record, { runtimeOnly: false });
      }
      if (plan.createSandbox) await removeInitContainers(pod, record, 0);
    } else {
      for (const kill of plan.toKill) {
        outcome.changed = true;
        const found = findContainer(pod, kill.record.name);
        await killContainer(containers, {
          pod,
          container: kill.container ?? found?.container,
          kind: found?.kind ?? "regular",
          record: kill.record,
          message: kill.message,
          reason: kill.reason,
          podIp: ip,
        });
      }
    }
    if (signal.aborted) return outcome;
    await removeInitContainers(pod, record, 1);

    const starting = plan.ephemeralToStart.length + plan.toStart.length + (plan.nextInitContainer === undefined ? 0 : 1);
    if (!plan.createSandbox && (starting === 0 || plan.killPod)) return outcome;

    let sandboxId = plan.sandboxId ?? "";
    let config: CriInput<"PodSandboxConfig">;
    let ips: readonly string[] = pod.spec.hostNetwork ? options.node.ips() : podIps(record);
    try {
      config = sandboxOf(pod, plan.attempt);
      if (plan.createSandbox) {
        outcome.changed = true;
        await mkdir(config.logDirectory as string, { recursive: true, mode: 0o755 });
        options.onStart?.("pod");
        sandboxId = await runtime.runPodSandbox(config, await options.runtimeHandler(pod));
        if (!pod.spec.hostNetwork) {
          const network = (await runtime.podSandboxStatus(sandboxId)).network;
          ips = [network?.ip ?? "", ...(network?.additionalIps ?? []).map((entry) => entry.ip)].filter((text) => text !== "");
        }
      }
    } catch (err) {
      const message = (err as Error).message;
      if (plan.createSandbox) options.onStart?.("pod", message);
      containers.event(pod, undefined, "Warning", "FailedCreatePodSandBox", `Failed to create pod sandbox: ${message}`);
      outcome.errors.push(
        `failed to "CreatePodSandbox" for ${JSON.stringify(describePod(pod))} with CreatePodSandboxError: ${JSON.stringify(message)}`,
      );
      return outcome;
    }

    // A volume may tell the Pod's address, which is known only now.
    const pullSecrets = await readPullSecrets(pod);
    const start = async (container: AnyContainer, kind: ContainerKind): Promise<void> => {
      if (signal.aborted) return;
      const before = failures.get(container.name);
      try {
        if (kind !== "ephemeral") checkCrashLoop(pod, record, container, kind);
        options.onStart?.(kind);
        await startOne(pod, container, kind, { record, sandboxId, config, ips, mounted, pullSecrets });
        failures.delete(container.name);
        outcome.changed = true;
      } catch (err) {
        const reason = err instanceof ContainerError ? err.reason : "CreateContainerError";
        const message = (err as Error).message;
        if (reason !== "CrashLoopBackOff") options.onStart?.(kind, reason);
        if (before?.reason !== reason || before.message !== message) outcome.changed = true;
        failures.set(container.name, { reason, message });
        outcome.errors.push(
          `failed to "StartContainer" for ${JSON.stringify(container.name)} with ${reason}: ${JSON.stringify(message)}`,
        );
      }
    };
    for (const container of plan.ephemeralToStart) await start(container, "ephemeral");
    if (plan.nextInitContainer !== undefined) {
      await start(plan.nextInitContainer, "init");
      return outcome;
    }
    for (const container of plan.toStart) await start(container, "regular");
    return outcome;
  }

  function sandboxOf(pod: NodePod, attempt: number): CriInput<"PodSandboxConfig"> {
    const { hostname, domain } = hostnameAndDomain(pod, options.node.clusterDomain);
    return sandboxConfig(pod, {
      attempt,
      hostname: nodenameOf(pod, hostname, domain),
      dns: podDns(pod, options.dns(), (reason, message) => containers.event(pod, undefined, "Warning", reason, message)),
      cgroupParent: options.cgroups.parentOf(pod),
      logDirectory: podLogDirectory(containers.podLogsDir, pod),
    });
  }

  /** @throws ContainerError CrashLoopBackOff while the container has to wait. */
  function checkCrashLoop(pod: NodePod, record: PodRecord, container: AnyContainer, kind: ContainerKind): void {
    const ended = record.containers.find((candidate) => candidate.name === container.name && candidate.state === "exited");
    if (ended === undefined) return;
    const key = `${describePod(pod)}_${container.name}_${containerHash(container)}`;
    if (!crashLoops.isWaitingSince(key, ended.finishedAt)) {
      crashLoops.next(key, ended.finishedAt);
      return;
    }
    containers.event(pod, { name: container.name, kind }, "Warning", "BackOff", "Back-off restarting failed container");
    const wait = formatDuration(crashLoops.current(key));
    throw new ContainerError(
      "CrashLoopBackOff",
      `back-off ${wait} restarting failed container=${container.name} pod=${describePod(pod)}`,
    );
  }

  interface StartContext {
    record: PodRecord;
    sandboxId: string;
    config: CriInput<"PodSandboxConfig">;
    ips: readonly string[];
    mounted: ReadonlyMap<string, SetUpVolume>;
    pullSecrets: readonly Secret[];
  }

  async function startOne(pod: NodePod, container: AnyContainer, kind: ContainerKind, context: StartContext): Promise<void> {
    const event = (type: "Normal" | "Warning", reason: string, message: string): void =>
      containers.event(pod, { name: container.name, kind }, type, reason, message);
    let found: Awaited<ReturnType<ImagePuller["ensure"]>>;
    try {
      found = await options.images.ensure(pod, container, context.pullSecrets, context.config, event);
    } catch (err) {
      event("Warning", "Failed", `Error: ${err instanceof ContainerError ? err.reason : (err as Error).message}`);
      throw err;
    }
    const { node } = options;
    await startContainer(containers, {
      pod,
      container,
      kind,
      record: context.record,
      sandboxId: context.sandboxId,
      sandboxConfig: context.config,
      podIp: context.ips[0] ?? "",
      imageRef: found.imageRef,
      image: found.image,
      resources: { ...containerResources(pod, container, node), ...options.resources?.placementOf(pod, container) },
      options: async () => {
        const services = options.services();
        if (services === undefined) throw new Error("services have not yet been read at least once, cannot construct envs");
        const environment = await environmentOf(pod, container, {
          ...downwardContext(context.ips),
          objects: options.objects,
          services,
          onInvalidNames: (objectKind, name, keys) => {
            const told = `${pod.metadata.uid}/${container.name}/${name}`;
            if (invalidNamesTold.has(told)) return;
            invalidNamesTold.add(told);
            const message = `Keys [${keys.join(", ")}] from the EnvFrom ${objectKind === "ConfigMap" ? "configMap" : "secret"} ${name} were skipped since they are considered invalid environment variable names.`;
            containers.event(pod, undefined, "Warning", "InvalidEnvironmentVariableNames", message);
          },
        });
        const mounts = await containerMounts(pod, container, {
          podDir: volumes.podDir(pod.metadata.uid),
          podIps: context.ips,
          clusterDomain: node.clusterDomain,
          volumes: context.mounted,
          environment,
          mounter: options.mounter,
        });
        const access = await options.resources?.accessOf(pod, container);
        return {
          // What the Pod says of a variable is right.
          environment: new Map([...Object.entries(access?.envs ?? {}), ...environment]),
          mounts: [...(access?.mounts ?? []).map(({ readOnly: readonly, ...mount }) => ({ ...mount, readonly })), ...mounts],
          devices: access?.devices ?? [],
          annotations: access?.annotations ?? {},
        };
      },
    });
    options.resources?.started(pod, container);
  }

  /** A secret that is not there is passed over: the registry may not ask for it. */
  async function readPullSecrets(pod: NodePod): Promise<Secret[]> {
    const secrets: Secret[] = [];
    for (const { name } of pod.spec.imagePullSecrets ?? []) {
      try {
        if (name) secrets.push(await options.objects.secret(pod.metadata.namespace, name));
      } catch (err) {
        if (!isNotFound(err)) log.warn("cannot read a pull secret", { pod: describePod(pod), secret: name });
      }
    }
    return secrets;
  }

  /** Ended init containers, but for the newest `keep` of each name: a new sandbox runs them all again. */
  async function removeInitContainers(pod: NodePod, record: PodRecord, keep: number): Promise<void> {
    for (const { name } of pod.spec.initContainers ?? []) {
      const ended = record.containers.filter((container) => container.name === name && !isAlive(container));
      for (const container of ended.slice(keep)) await removeContainer(containers, pod.metadata, container);
    }
  }

  async function killEverything(pod: NodePod, record: PodRecord, terminate: TerminateOptions): Promise<void> {
    const ip = podIps(record)[0] ?? "";
    const results = await Promise.allSettled(
      record.containers.filter(isAlive).map((container) => {
        const found = terminate.runtimeOnly ? undefined : findContainer(pod, container.name);
        return killContainer(containers, {
          pod: terminate.runtimeOnly ? undefined : pod,
          container: found?.container,
          kind: found?.kind ?? "regular",
          record: container,
          message: "",
          podIp: ip,
          graceSecondsOverride: terminate.graceSecondsOverride,
        });
      }),
    );
    const failed = results.find((result) => result.status === "rejected");
    if (failed !== undefined) throw failed.reason;
    for (const sandbox of record.sandboxes) {
      try {
        await runtime.stopPodSandbox(sandbox.id);
      } catch (err) {
        if (!isRuntimeNotFound(err)) throw err;
      }
    }
  }

  async function terminate(pod: NodePod, terminateOptions: TerminateOptions): Promise<void> {
    const { uid } = pod.metadata;
    const tell = (record: PodRecord): void => {
      if (terminateOptions.runtimeOnly) return;
      const made = statusOf(pod, record);
      const { verdict } = terminateOptions;
      status.set(pod, verdict === undefined ? made : { ...made, phase: "Failed", ...verdict });
    };
    const record = await read(pod);
    tell(record);
    probes.stopLivenessAndStartup(uid);
    await killEverything(pod, record, terminateOptions);
    probes.remove(uid);
    const after = await read(pod);
    const running = after.containers.filter((container) => container.state === "running");
    if (running.length > 0) {
      const names = running.map((container) => container.name).join(", ");
      throw new Error(`detected running containers after a successful KillPod, CRI violation: ${names}`);
    }
    tell(after);
  }

  async function clean(pod: NodePod, { deleted, runtimeOnly }: { deleted: boolean; runtimeOnly: boolean }): Promise<void> {
    const { uid } = pod.metadata;
    const last = status.get(uid);
    if (!runtimeOnly && last !== undefined) status.set(pod, terminatedStatus(last, pod));
    startFailures.delete(uid);
    volumesMissingSince.delete(uid);
    if (!deleted) {
      if (!options.keepTerminatedPodVolumes) await volumes.unmount(uid);
      if (!(await options.cgroups.remove(uid))) throw new Error(`processes are left in the cgroup of pod ${uid}`);
      return;
    }
    const record = await read(pod);
    for (const container of record.containers) await removeContainer(containers, pod.metadata, container);
    for (const sandbox of record.sandboxes) {
      try {
        await runtime.stopPodSandbox(sandbox.id);
        await runtime.removePodSandbox(sandbox.id);
      } catch (err) {
        if (!isRuntimeNotFound(err)) throw err;
      }
    }
    await removePodLogs(containers, uid);
    if (!(await options.cgroups.remove(uid))) throw new Error(`processes are left in the cgroup of pod ${uid}`);
    // The folder goes last: it is what tells an agent that starts anew that there is something to take away.
    await volumes.remove(uid);
  }

  return {
    sync,
    terminate,
    clean,
    collect() {
      crashLoops.collect();
      volumeRetries.collect();
    },
  };
}

function isAlive(container: { state: string }): boolean {
  return container.state !== "exited";
}

export function isTerminal(status: PodStatus): boolean {
  return status.phase === "Failed" || status.phase === "Succeeded";
}

/** Pure. Source: pkg/kubelet/active_deadline.go */
function deadlineVerdict(pod: NodePod, status: PodStatus, now: number): PodVerdict | undefined {
  const dueMs = deadlineDueMs(pod, status, now);
  if (dueMs === undefined || dueMs > 0) return undefined;
  return { reason: "DeadlineExceeded", message: "Pod was active on the node longer than the specified deadline" };
}

/** How long the Pod may still run; undefined without a limit. */
function deadlineDueMs(pod: NodePod, status: PodStatus, now: number): number | undefined {
  const seconds = pod.spec.activeDeadlineSeconds;
  const started = parseTime(status.startTime ?? "");
  return seconds === undefined || started === undefined ? undefined : started + seconds * 1000 - now;
}
