import type { Logger } from "@coxswain/apimachinery/logging/logger";
import type { Rejection } from "../pods/admit.ts";
import type { AnyContainer, NodePod } from "../pods/pod.ts";
import type { CriInput } from "../runtime/cri-schema.ts";
import { labelNames } from "../runtime/labels.ts";
import { type ContainerRuntime, containerState, isRuntimeNotFound } from "../runtime/runtime.ts";
import type { CpuManager } from "./cpu/cpu-manager.ts";
import { formatCpus } from "./cpu/cpu-set.ts";
import type { DeviceManager } from "./devices/device-manager.ts";
import type { MemoryManager } from "./memory/memory-manager.ts";
import type { TopologyManager } from "./topology/topology-manager.ts";

export interface ResourceManagers {
  /** Whether a Pod's admission is a matter of theirs at all. */
  concerns(pod: NodePod): boolean;
  /** Gives the Pod's containers what they get to themselves, or says why not. Never rejected. */
  admit(pod: NodePod): Promise<Rejection | undefined>;
  /** Where a container runs and where its memory comes from. */
  placementOf(pod: NodePod, container: AnyContainer): Pick<CriInput<"LinuxContainerResources">, "cpusetCpus" | "cpusetMems">;
  /** The container exists. */
  started(pod: NodePod, container: AnyContainer): void;
  /** Moves running containers to the CPUs that are theirs by now, and takes back what Pods that ended had. */
  reconcile(): Promise<void>;
}

export interface ResourceManagersOptions {
  cpu: CpuManager;
  memory: MemoryManager;
  devices: DeviceManager;
  topology: TopologyManager;
  /** Policies that do nothing need not be asked. */
  idle: boolean;
  runtime: ContainerRuntime;
  /** Pods that hold resources; undefined as long as not all that are wanted are known. */
  activePods: () => readonly NodePod[] | undefined;
  log: Logger;
}

/** Source: pkg/kubelet/cm/container_manager_linux.go, internal_container_lifecycle_linux.go, topologymanager/scope.go */
export function newResourceManagers(options: ResourceManagersOptions): ResourceManagers {
  const { cpu, memory, devices, topology, runtime, log } = options;
  let beingAdmitted: NodePod | undefined;
  /** Container's id → the CPUs that the runtime was told of last. */
  const told = new Map<string, string>();

  function releaseEnded(): void {
    const active = options.activePods();
    if (active === undefined) return;
    const holders = beingAdmitted === undefined ? active : [...active, beingAdmitted];
    for (const manager of [cpu, memory, devices]) manager.release(holders);
  }

  return {
    concerns: (pod) => !options.idle || devices.concerns(pod),
    async admit(pod) {
      beingAdmitted = pod;
      try {
        releaseEnded();
        await topology.place(pod, async (container, hint) => {
          await devices.allocate(pod, container, hint);
          cpu.allocate(pod, container, hint);
          memory.allocate(pod, container, hint);
        });
        return undefined;
      } catch (err) {
        log.error("a pod's resources cannot be given", err, { pod: `${pod.metadata.namespace}/${pod.metadata.name}` });
        return rejectionOf(err as Error);
      } finally {
        beingAdmitted = undefined;
      }
    },
    placementOf(pod, { name }) {
      const { uid } = pod.metadata;
      const cpus = formatCpus(cpu.cpusOf(uid, name));
      const nodes = memory.nodesOf(uid, name).join(",");
      return { ...(cpus !== "" && { cpusetCpus: cpus }), ...(nodes !== "" && { cpusetMems: nodes }) };
    },
    started: (pod, container) => memory.started(pod, container),
    async reconcile() {
      releaseEnded();
      const active = new Set((options.activePods() ?? []).map((pod) => pod.metadata.uid));
      const running = (await runtime.listContainers()).filter(({ state }) => state === containerState.running);
      for (const { id, labels } of running) {
        const uid = labels[labelNames.podUid] ?? "";
        const cpus = formatCpus(cpu.cpusOf(uid, labels[labelNames.containerName] ?? ""));
        if (!active.has(uid) || cpus === "" || told.get(id) === cpus) continue;
        try {
          await runtime.updateContainerResources(id, { cpusetCpus: cpus });
          told.set(id, cpus);
        } catch (err) {
          if (!isRuntimeNotFound(err)) log.error("cannot move a container to its CPUs", err, { container: id, cpus });
        }
      }
      for (const id of told.keys()) if (!running.some((container) => container.id === id)) told.delete(id);
    },
  };
}

/** Errors that users can do something about have a reason of their own. Source: pkg/kubelet/cm/admission/errors.go */
function rejectionOf(err: Error & { reason?: string }): Rejection {
  if (err.reason !== undefined) return { reason: err.reason, message: err.message };
  return { reason: "UnexpectedAdmissionError", message: `Allocate failed due to ${err.message}, which is unexpected` };
}
