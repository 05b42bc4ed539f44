import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type { PodStatus } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { makeFolder } from "@coxswain/apimachinery/process/files/make-folder";
import { podDns } from "../environment/dns.ts";
import type { DownwardContext } from "../environment/downward-api-env.ts";
import { hostnameAndDomain, nodenameOf } from "../environment/hostname.ts";
import { type AnyContainer, type ContainerKind, describePod, findContainer, type NodePod } from "../pod/pod.ts";
import type { TerminateOptions } from "../pod/pod-verdict.ts";
import { ContainerError } from "../runtime/container-error.ts";
import { killContainer } from "../runtime/containers.ts";
import type { CriInput } from "../runtime/cri-schema.ts";
import { podLogDirectory, removePodLogs } from "../runtime/pod-logs.ts";
import { type PodRecord, podIps, readPodRecord } from "../runtime/pod-record.ts";
import type { ContainerRuntime } from "../runtime/runtime.ts";
import { isRuntimeNotFound } from "../runtime/runtime.ts";
import { sandboxConfig } from "../runtime/sandbox.ts";
import { blockedStatus, podStatus, terminatedStatus } from "../status/pod-status.ts";
import type { SetUpVolume } from "../volumes/volume.ts";
import { groupsOfVolumes } from "../volumes/volume-groups.ts";
import { ContainerStarter, type StartContext } from "./container-starter.ts";
import type { CrashLoops } from "./crash-loops.ts";
import { newCrashLoops } from "./crash-loops.ts";
import { deadlineDueMs, deadlineVerdict } from "./deadline.ts";
import { isAlive, killPod, removeContainers, removeInitContainers } from "./kill-pod.ts";
import type { MissingVolumes } from "./missing-volumes.ts";
import { newMissingVolumes } from "./missing-volumes.ts";
import type { PodRunnerOptions } from "./pod-runner-options.ts";
import { type PodActions, planPod } from "./sync-pod.ts";

export type SyncOutcome =
  /** All containers have exited and will not be restarted. */
  | { kind: "ended" }
  /** `againMs` is the time until the Pod's deadline, for which there is no event. */
  | { kind: "synced"; againMs?: number }
  /** `retryMs` overrides the default retry delay; with `jitter` up to half of it is added. */
  | { kind: "failed"; error: Error; retryMs?: number; jitter?: boolean };

/**
 * Applies the desired state of a Pod to the runtime. Called by the Pod workers, never concurrently for one Pod except that
 * `terminate` may overlap with an earlier `terminate`.
 */
export interface PodRunner {
  /** Brings the Pod to its desired state. `signal` is aborted when the Pod has to terminate. */
  sync(pod: NodePod, signal: AbortSignal): Promise<SyncOutcome>;
  /** Stops all containers and sandboxes of a Pod. @throws Error when something still runs */
  terminate(pod: NodePod, options: TerminateOptions): Promise<void>;
  /** Releases resources of a terminated Pod; removes everything when it was deleted. @throws Error when something is left */
  clean(pod: NodePod, options: { deleted: boolean; runtimeOnly: boolean }): Promise<void>;
  collect(): void;
}

const networkRetryMs = 1_000;

interface Outcome {
  /** The Pod's status has to be computed again. */
  changed: boolean;
  errors: string[];
}

/**
 * Creates the runner of all Pods of the node. Its crash loops and start failures are kept in memory: they restart with the
 * agent.
 * Source: pkg/kubelet/kubelet.go syncPod, kuberuntime_manager.go SyncPod
 */
export function newPodRunner(options: PodRunnerOptions): PodRunner {
  return new RuntimePodRunner(options);
}

class RuntimePodRunner implements PodRunner {
  readonly #options: PodRunnerOptions;
  readonly #runtime: ContainerRuntime;
  readonly #crashLoops: CrashLoops;
  readonly #missingVolumes: MissingVolumes;
  readonly #starter: ContainerStarter;
  readonly #startFailures = new Map<string, Map<string, { reason: string; message: string }>>();

  constructor(options: PodRunnerOptions) {
    this.#options = options;
    const { containers, clock } = options;
    const { runtime } = containers;
    this.#runtime = runtime;
    this.#crashLoops = newCrashLoops({ clock, event: containers.event });
    this.#missingVolumes = newMissingVolumes({ clock, event: containers.event });
    this.#starter = new ContainerStarter(options, (ips) => this.#downwardContext(ips));
  }

  async sync(pod: NodePod, signal: AbortSignal): Promise<SyncOutcome> {
    const { clock, containers, status, volumes, probes } = this.#options;
    const record = await this.#read(pod);
    const made = this.#statusOf(pod, record);
    const verdict = deadlineVerdict(pod, made, clock.now());
    if (verdict !== undefined && !isTerminal(made)) {
      containers.event(pod, undefined, "Normal", "DeadlineExceeded", verdict.message);
      status.set(pod, { ...made, phase: "Failed", ...verdict });
      return { kind: "ended" };
    }
    const refusal = made.phase === "Pending" ? await this.#options.appArmor?.refusal(pod) : undefined;
    if (refusal !== undefined) return this.#block(pod, record, made, "AppArmor", `Cannot enforce AppArmor: ${refusal}`);
    status.set(pod, made);
    if (isTerminal(made)) return { kind: "ended" };

    const problem = this.#options.networkProblem();
    if (problem !== undefined && !pod.spec.hostNetwork) {
      containers.event(pod, undefined, "Warning", "NetworkNotReady", `network is not ready: ${problem}`);
      return { kind: "failed", error: new Error(`network is not ready: ${problem}`), retryMs: networkRetryMs, jitter: true };
    }
    await this.#options.prepare?.(pod);
    try {
      await this.#options.cgroups.ensure(pod);
    } catch (err) {
      const message = messageOf(err);
      containers.event(
        pod,
        undefined,
        "Warning",
        "FailedCreatePodContainer",
        `unable to ensure pod container exists: ${message}`,
      );
      const failure = `failed to ensure that the pod: ${pod.metadata.uid} cgroups exist and are correctly applied: ${message}`;
      return { kind: "failed", error: new Error(failure) };
    }
    await makeFolder(volumes.podDir(pod.metadata.uid), 0o750);

    const ips = pod.spec.hostNetwork ? this.#options.node.ips() : podIps(record);
    const { volumes: mounted, failures } = await volumes.setUp(pod, this.#downwardContext(ips));
    const missing = failures.filter(({ volume }) => !mounted.has(volume));
    if (missing.length > 0) {
      // Running containers keep their volumes; their probes continue.
      if (record.containers.some((container) => container.state === "running")) probes.add(pod);
      return { kind: "failed", ...this.#missingVolumes.failed(pod, missing) };
    }
    // A mounted volume that cannot be refreshed (object deleted, API server unavailable) does not block the Pod.
    this.#missingVolumes.outdated(pod, failures);
    this.#missingVolumes.forget(pod.metadata.uid);
    probes.add(pod);

    const outcome = await this.#act(pod, record, planPod(pod, record, probes.results), mounted, signal);
    if (outcome.changed) status.set(pod, this.#statusOf(pod, await this.#read(pod)));
    if (outcome.errors.length > 0) {
      return { kind: "failed", error: new Error(`error syncing pod: ${outcome.errors.join(", ")}`) };
    }
    const dueMs = deadlineDueMs(pod, made, clock.now());
    return dueMs === undefined ? { kind: "synced" } : { kind: "synced", againMs: dueMs };
  }

  /** Stops a Pod that this machine cannot run at present, and reports why. */
  async #block(pod: NodePod, record: PodRecord, made: PodStatus, reason: string, message: string): Promise<SyncOutcome> {
    this.#options.status.set(pod, blockedStatus(made, reason, message));
    if (record.sandboxes.some((sandbox) => sandbox.ready) || record.containers.some(isAlive)) {
      try {
        await this.#kill(pod, record, { runtimeOnly: false });
      } catch (err) {
        return { kind: "failed", error: new Error(`error killing pod: ${messageOf(err)}`) };
      }
    }
    return { kind: "failed", error: new Error(`pod cannot be run: ${message}`) };
  }

  async #kill(pod: NodePod, record: PodRecord, terminateOptions: TerminateOptions): Promise<void> {
    const { containers } = this.#options;
    try {
      await killPod(containers, pod, record, terminateOptions);
    } catch (err) {
      containers.event(pod, undefined, "Warning", "FailedKillPod", `error killing pod: ${messageOf(err)}`);
      throw err;
    }
  }

  async terminate(pod: NodePod, terminateOptions: TerminateOptions): Promise<void> {
    const { status, probes } = this.#options;
    const { uid } = pod.metadata;
    const notify = (record: PodRecord): void => {
      if (terminateOptions.runtimeOnly) return;
      const made = this.#statusOf(pod, record);
      const { verdict } = terminateOptions;
      status.set(pod, verdict === undefined ? made : { ...made, phase: "Failed", ...verdict });
    };
    const record = await this.#read(pod);
    notify(record);
    probes.stopLivenessAndStartup(uid);
    await this.#kill(pod, record, terminateOptions);
    probes.remove(uid);
    const after = await this.#read(pod);
    const running = after.containers.filter((container) => container.state === "running");
    if (running.length > 0) {
      const names = running.map((container) => container.name).join(", ");
      throw new Error(`detected running containers after a successful KillPod, CRI violation: ${names}`);
    }
    notify(after);
  }

  async clean(pod: NodePod, { deleted, runtimeOnly }: { deleted: boolean; runtimeOnly: boolean }): Promise<void> {
    const { status, volumes, containers } = this.#options;
    const { uid } = pod.metadata;
    const last = status.get(uid);
    if (!runtimeOnly && last !== undefined) status.set(pod, terminatedStatus(last, pod));
    this.#startFailures.delete(uid);
    this.#missingVolumes.forget(uid);
    if (!deleted) {
      // What they use is what the node lacks.
      if (isEvicted(last)) await removeContainers(containers, pod, await this.#read(pod));
      if (!this.#options.keepTerminatedPodVolumes) await volumes.unmount(uid);
      if (!(await this.#options.cgroups.remove(uid))) throw new Error(`processes are left in the cgroup of pod ${uid}`);
      return;
    }
    const record = await this.#read(pod);
    await removeContainers(containers, pod, record);
    for (const sandbox of record.sandboxes) {
      try {
        await this.#runtime.stopPodSandbox(sandbox.id);
        await this.#runtime.removePodSandbox(sandbox.id);
      } catch (err) {
        if (!isRuntimeNotFound(err)) throw err;
      }
    }
    await removePodLogs(containers, uid);
    if (!(await this.#options.cgroups.remove(uid))) throw new Error(`processes are left in the cgroup of pod ${uid}`);
    // The Pod's directory is removed last: after a restart it shows that there is still something to clean up.
    await volumes.remove(uid);
  }

  collect(): void {
    this.#crashLoops.collect();
    this.#missingVolumes.collect();
  }

  #read(pod: NodePod): Promise<PodRecord> {
    const { uid, name, namespace } = pod.metadata;
    return readPodRecord(this.#runtime, { uid, name, namespace });
  }

  #statusOf(pod: NodePod, record: PodRecord): PodStatus {
    const { status, probes, clock } = this.#options;
    return podStatus({
      pod,
      record,
      previous: status.get(pod.metadata.uid),
      hostIps: this.#options.node.ips(),
      probes: probes.results,
      startFailure: (container) => this.#startFailures.get(pod.metadata.uid)?.get(container),
      runtimeName: this.#options.runtimeName?.() ?? "containerd",
      now: clock.now(),
    });
  }

  #downwardContext(ips: readonly string[]): DownwardContext {
    return {
      nodeName: this.#options.node.name,
      hostIps: this.#options.node.ips(),
      podIps: ips,
      allocatable: this.#options.node.allocatable(),
    };
  }

  async #act(
    pod: NodePod,
    record: PodRecord,
    plan: PodActions,
    mounted: ReadonlyMap<string, SetUpVolume>,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const { containers } = this.#options;
    const outcome: Outcome = { changed: false, errors: [] };
    await this.#endUnwanted(pod, record, plan, outcome);
    if (signal.aborted) return outcome;
    await removeInitContainers(containers, pod, record, 1);

    const starting = plan.ephemeralToStart.length + plan.toStart.length + (plan.nextInitContainer === undefined ? 0 : 1);
    if (!plan.createSandbox && (starting === 0 || plan.killPod)) return outcome;
    const sandbox = await this.#ensureSandbox(pod, record, plan, { mounted, signal }, outcome);
    if (sandbox === undefined) return outcome;
    // `sandbox` has the Pod's IPs, which environment variables may refer to; `record` predates a new sandbox.
    const context = { record, ...sandbox, mounted, signal, pullSecrets: await this.#starter.pullSecretsOf(pod) };
    const start = async (container: AnyContainer, kind: ContainerKind): Promise<void> => {
      await this.#options.turns?.next(); // of thousands, none may get as far as a call to the runtime
      if (!signal.aborted) await this.#startOne(pod, container, kind, context, outcome);
    };
    for (const container of plan.ephemeralToStart) await start(container, "ephemeral");
    if (plan.nextInitContainer !== undefined) await start(plan.nextInitContainer, "init");
    else for (const container of plan.toStart) await start(container, "regular");
    return outcome;
  }

  async #endUnwanted(pod: NodePod, record: PodRecord, plan: PodActions, outcome: Outcome): Promise<void> {
    const { containers } = this.#options;
    if (plan.createSandbox && plan.sandboxId !== undefined) {
      const message = "Pod sandbox changed, it will be killed and re-created.";
      containers.event(pod, undefined, "Normal", "SandboxChanged", message);
    }
    if (plan.killPod) {
      if (record.sandboxes.some((sandbox) => sandbox.ready) || record.containers.some(isAlive)) {
        outcome.changed = true;
        await killPod(containers, pod, record, { runtimeOnly: false });
      }
      if (plan.createSandbox) await removeInitContainers(containers, pod, record, 0);
      return;
    }
    for (const kill of plan.toKill) {
      outcome.changed = true;
      const found = findContainer(pod, kill.record.name);
      await killContainer(containers, {
        pod,
        container: kill.container,
        kind: found?.kind ?? "regular",
        record: kill.record,
        message: kill.message,
        reason: kill.reason,
        podIp: podIps(record)[0] ?? "",
      });
    }
  }

  /** @returns the existing or new sandbox; undefined when creating it failed, which is reported in `outcome` and as an event unless the Pod has to terminate */
  async #ensureSandbox(
    pod: NodePod,
    record: PodRecord,
    plan: PodActions,
    { mounted, signal }: Pick<StartContext, "mounted" | "signal">,
    outcome: Outcome,
  ): Promise<Pick<StartContext, "sandboxId" | "config" | "ips"> | undefined> {
    const { containers } = this.#options;
    const ips = pod.spec.hostNetwork ? this.#options.node.ips() : podIps(record);
    let sandboxId: string;
    let config: CriInput<"PodSandboxConfig">;
    try {
      config = this.#sandboxOf(pod, plan.attempt, groupsOfVolumes(pod, mounted));
      if (!plan.createSandbox) return { sandboxId: plan.sandboxId ?? "", config, ips };
      outcome.changed = true;
      await makeFolder(config.logDirectory!, 0o755);
      this.#options.onStart?.("pod");
      sandboxId = await this.#runtime.runPodSandbox(config, await this.#options.runtimeHandler(pod));
    } catch (err) {
      if (signal.aborted) return undefined; // a Pod that is being removed may lack what its sandbox needs
      const message = messageOf(err);
      if (plan.createSandbox) this.#options.onStart?.("pod", message);
      containers.event(pod, undefined, "Warning", "FailedCreatePodSandBox", `Failed to create pod sandbox: ${message}`);
      outcome.errors.push(
        `failed to "CreatePodSandbox" for ${JSON.stringify(describePod(pod))} with CreatePodSandboxError: ${JSON.stringify(message)}`,
      );
      return undefined;
    }
    if (pod.spec.hostNetwork) return { sandboxId, config, ips };
    try {
      const { network } = await this.#runtime.podSandboxStatus(sandboxId);
      const given = [network?.ip ?? "", ...(network?.additionalIps ?? []).map((entry) => entry.ip)];
      return { sandboxId, config, ips: given.filter((text) => text !== "") };
    } catch (err) {
      const message = messageOf(err);
      containers.event(pod, undefined, "Warning", "FailedPodSandBoxStatus", `Unable to get pod sandbox status: ${message}`);
      outcome.errors.push(message);
      return undefined;
    }
  }

  async #startOne(
    pod: NodePod,
    container: AnyContainer,
    kind: ContainerKind,
    context: StartContext,
    outcome: Outcome,
  ): Promise<void> {
    const failures = this.#startFailures.getOrInsertComputed(pod.metadata.uid, () => new Map());
    const before = failures.get(container.name);
    try {
      if (kind !== "ephemeral") this.#crashLoops.check(pod, context.record, container, kind);
      this.#options.onStart?.(kind);
      await this.#starter.start(pod, container, kind, context);
      failures.delete(container.name);
      outcome.changed = true;
    } catch (err) {
      const reason = err instanceof ContainerError ? err.reason : "CreateContainerError";
      const message = messageOf(err);
      if (reason !== "CrashLoopBackOff") this.#options.onStart?.(kind, reason);
      if (before?.reason !== reason || before.message !== message) outcome.changed = true;
      failures.set(container.name, { reason, message });
      outcome.errors.push(
        `failed to "StartContainer" for ${JSON.stringify(container.name)} with ${reason}: ${JSON.stringify(message)}`,
      );
    }
  }

  #sandboxOf(pod: NodePod, attempt: number, volumeGroups: readonly number[]): CriInput<"PodSandboxConfig"> {
    const { containers } = this.#options;
    const { hostname, domain } = hostnameAndDomain(pod, this.#options.node.clusterDomain);
    return sandboxConfig(pod, {
      attempt,
      hostname: nodenameOf(pod, hostname, domain),
      dns: podDns(pod, this.#options.dns(), (reason, message) => containers.event(pod, undefined, "Warning", reason, message)),
      cgroupParent: this.#options.cgroups.parentOf(pod),
      logDirectory: podLogDirectory(containers.podLogsDir, pod),
      volumeGroups,
    });
  }
}

/** Source: pkg/kubelet/eviction/helpers.go PodIsEvicted */
function isEvicted(status: PodStatus | undefined): boolean {
  return status?.phase === "Failed" && status.reason === "Evicted";
}

/** True for the phases Failed and Succeeded. */
export function isTerminal(status: PodStatus): boolean {
  return status.phase === "Failed" || status.phase === "Succeeded";
}
