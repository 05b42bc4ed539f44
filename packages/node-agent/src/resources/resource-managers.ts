import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { AnyContainer, NodePod } from "../pod/pod.ts";
import type { Rejection } from "../pod/pod-verdict.ts";
import type { CriInput } from "../runtime/cri-schema.ts";
import { labelNames } from "../runtime/labels.ts";
import { type ContainerRuntime, containerState, isRuntimeNotFound } from "../runtime/runtime.ts";
import type { CpuManager } from "./cpu/cpu-manager.ts";
import { formatCpus } from "./cpu/cpu-set.ts";
import type { DeviceManager } from "./devices/device-manager.ts";
import type { MemoryManager } from "./memory/memory-manager.ts";
import type { TopologyManager } from "./topology/topology-manager.ts";

/** The CPU, memory, device and topology managers, as Pod admission and the container runtime use them. */
export interface ResourceManagers {
  /** False when no manager would allocate anything for the Pod. */
  concerns(pod: NodePod): boolean;
  /** Allocates exclusive resources for the Pod's containers. Resolves to a rejection on failure; the promise never rejects. */
  admit(pod: NodePod): Promise<Rejection | undefined>;
  /** The CPUs and NUMA nodes that a container is restricted to. */
  placementOf(pod: NodePod, container: AnyContainer): Pick<CriInput<"LinuxContainerResources">, "cpusetCpus" | "cpusetMems">;
  /** Called after a container was created. */
  started(pod: NodePod, container: AnyContainer): void;
  /** Updates the cpusets of running containers and releases resources of terminated Pods. */
  reconcile(): Promise<void>;
}

interface ResourceManagersOptions {
  cpu: CpuManager;
  memory: MemoryManager;
  devices: DeviceManager;
  topology: TopologyManager;
  /** True when all policies are `none`: admission then skips Pods without device requests. */
  idle: boolean;
  runtime: ContainerRuntime;
  /** Pods that hold resources; undefined until all Pod sources have reported. */
  activePods: () => readonly NodePod[] | undefined;
  log: Logger;
}

/**
 * Combines the managers of CPUs, memory and devices under the topology manager's choice of NUMA nodes. `admit` must not run for
 * two Pods at once.
 * Source: pkg/kubelet/cm/container_manager_linux.go, internal_container_lifecycle_linux.go, topologymanager/scope.go
 */
export function newResourceManagers(options: ResourceManagersOptions): ResourceManagers {
  const { cpu, memory, devices, topology, runtime, log } = options;
  let beingAdmitted: NodePod | undefined;
  /** Container ID → the CPUs last written to the runtime. */
  const reported = new Map<string, string>();

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
        log.error("cannot allocate the resources of a pod", err, { pod: `${pod.metadata.namespace}/${pod.metadata.name}` });
        return rejectionOf(err);
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
        if (!active.has(uid) || cpus === "" || reported.get(id) === cpus) continue;
        try {
          await runtime.updateContainerResources(id, { cpusetCpus: cpus });
          reported.set(id, cpus);
        } catch (err) {
          if (!isRuntimeNotFound(err)) log.error("cannot move a container to its CPUs", err, { container: id, cpus });
        }
      }
      for (const id of reported.keys()) if (!running.some((container) => container.id === id)) reported.delete(id);
    },
  };
}

/** Errors with a specific reason keep it. Source: pkg/kubelet/cm/admission/errors.go */
function rejectionOf(err: unknown): Rejection {
  const message = messageOf(err);
  if (err instanceof Error && "reason" in err && typeof err.reason === "string") return { reason: err.reason, message };
  return { reason: "UnexpectedAdmissionError", message: `Allocate failed due to ${message}, which is unexpected` };
}
