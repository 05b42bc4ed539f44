import { join } from "node:path";
import type { FeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { AgentConfig } from "../agent-config.ts";
import type { NodePod } from "../pod/pod.ts";
import { quantityOf, type ResourceList } from "../pod/pod-resources.ts";
import type { ContainerRuntime } from "../runtime/runtime.ts";
import { newCheckpointFile } from "./checkpoint-file.ts";
import { CpuManager } from "./cpu/cpu-manager.ts";
import { parseCpuPolicyOptions } from "./cpu/cpu-policy-options.ts";
import { parseCpus } from "./cpu/cpu-set.ts";
import { cpuStateForm } from "./cpu/cpu-state.ts";
import { reservedCpus, type StaticCpus } from "./cpu/static-cpus.ts";
import { DeviceManager } from "./devices/device-manager.ts";
import { MemoryManager } from "./memory/memory-manager.ts";
import { memoryStateForm } from "./memory/memory-state.ts";
import { emptyMemory, type NodesMemory } from "./memory/numa-memory.ts";
import { type Reservations, reservedInAll } from "./reservations.ts";
import { newResourceManagers, type ResourceManagers } from "./resource-managers.ts";
import type { MachineTopology } from "./topology/machine-topology.ts";
import { newTopologyManager, type TopologyPolicy, type TopologyScope } from "./topology/topology-manager.ts";

interface OpenOptions {
  config: AgentConfig;
  featureGates: FeatureGates;
  topology: MachineTopology;
  capacity: ResourceList;
  reservations: Reservations;
  runtime: ContainerRuntime;
  clock: Clock;
  turns?: Turns | undefined;
  log: Logger;
  activePods: () => readonly NodePod[] | undefined;
  onDevicesChange: () => void;
  onPluginRegistered: (resource: string) => void;
  onDevicesAllocated: (resource: string, ms: number) => void;
}

/** The managers, as a whole and one by one for the pod resources API. */
export interface OpenedManagers {
  managers: ResourceManagers;
  cpu: CpuManager;
  memory: MemoryManager;
  devices: DeviceManager;
}

/**
 * Creates the resource managers for the configured policies and restores their state from the root directory.
 * @throws Error when configuration, machine and restored state do not match
 * Source: pkg/kubelet/cm/container_manager_linux.go NewContainerManager, Start
 */
export function openResourceManagers(options: OpenOptions): OpenedManagers {
  const { config, featureGates: gates, topology, clock, log } = options;
  const numaNodes = topology.numaNodes.map(({ id }) => id);
  const cpuPath = join(config.rootDir, "cpu_manager_state");
  const settings = gates.enabled("CPUManager") ? cpuSettings(options) : undefined;
  const cpu = new CpuManager({ settings, file: newCheckpointFile(cpuPath, cpuStateForm), path: cpuPath, log });
  const machine = gates.enabled("MemoryManager") ? memoryOfNodes(options) : undefined;
  const memoryPath = join(config.rootDir, "memory_manager_state");
  const memory = new MemoryManager({ machine, file: newCheckpointFile(memoryPath, memoryStateForm), log });
  const devices = new DeviceManager({
    dir: join(config.rootDir, "device-plugins"),
    numaNodes,
    clock,
    turns: options.turns,
    log,
    onChange: options.onDevicesChange,
    onRegistered: options.onPluginRegistered,
    onAllocated: options.onDevicesAllocated,
  });
  const policy = config.topologyManagerPolicy as TopologyPolicy; // cast: checked by the setting's `must`
  const managers = newResourceManagers({
    cpu,
    memory,
    devices,
    topology: newTopologyManager({
      policy,
      scope: config.topologyManagerScope as TopologyScope, // cast: checked by the setting's `must`
      numaNodes,
      providers: [devices, cpu, memory],
    }),
    idle: settings === undefined && machine === undefined && policy === "none",
    runtime: options.runtime,
    activePods: options.activePods,
    log,
  });
  return { managers, cpu, memory, devices };
}

/** @returns undefined for the policy `none` */
function cpuSettings({ config, featureGates, topology, reservations, capacity }: OpenOptions): StaticCpus | undefined {
  const { cpuManagerPolicy: policy, cpuManagerPolicyOptions } = config;
  if (policy !== "none" && policy !== "static") throw new Error(`unknown policy: ${JSON.stringify(policy)}`);
  const policyOptions = parseCpuPolicyOptions(policy, cpuManagerPolicyOptions, featureGates);
  if (policy === "none") return undefined;
  const milliCpu = quantityOf(reservedInAll(capacity, reservations), "cpu").milliValue();
  const reserved = reservedCpus(topology.cpus, milliCpu, parseCpus(config.reservedCpus));
  return { machine: topology.cpus, reserved, options: policyOptions };
}

/** @returns undefined for the policy `None` */
function memoryOfNodes({ config, topology, reservations, capacity }: OpenOptions): NodesMemory | undefined {
  const { memoryManagerPolicy: policy } = config;
  if (policy === "None") return undefined;
  if (policy !== "Static") throw new Error(`unknown policy: ${JSON.stringify(policy)}`);
  return emptyMemory(topology.numaNodes, config.reservedMemory, reservedInAll(capacity, reservations));
}
