import { existsSync } from "node:fs";
import type { FeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { ConfigError } from "@coxswain/apimachinery/flags/run-main";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { AgentConfig } from "../agent-config.ts";
import { Systemd } from "../dbus/systemd.ts";
import type { AgentEvents } from "../events.ts";
import { quantityOf, type ResourceList } from "../pod/pod-resources.ts";
import { allocatable as newAllocatable } from "./allocatable.ts";
import { type Cgroups, newCgroups } from "./cgroups.ts";
import type { Machine } from "./machine.ts";
import { parseQosReserved } from "./qos-reserve.ts";
import type { Reservations } from "./reservations.ts";

/**
 * Creates the Pod cgroups with the node's allocatable resources as limits, and enforces the reservations on the reserved
 * cgroups (`--enforce-node-allocatable`).
 * @throws ConfigError when cgroups cannot be written, or the cgroup of a reservation does not exist
 * Source: pkg/kubelet/cm/node_container_manager_linux.go
 */
export async function startCgroups(options: {
  config: AgentConfig;
  featureGates: FeatureGates;
  machine: Machine;
  capacity: ResourceList;
  reservations: Reservations;
  notify: AgentEvents;
  clock: Clock;
  signal: AbortSignal;
  log: Logger;
  /** Of the cgroup file systems. Default: /sys/fs/cgroup. */
  mountPoint?: string;
}): Promise<Cgroups> {
  const { config, machine, capacity, reservations, notify } = options;
  const cgroups = await newCgroups({
    root: config.cgroupRoot || "/",
    systemd: config.cgroupDriver === "systemd" ? openSystemd(options) : undefined,
    perQos: config.cgroupsPerQos,
    cfsQuota: config.cpuCfsQuota,
    cfsPeriodUs: config.cpuCfsPeriodMs * 1000,
    podPidsLimit: config.podPidsLimit,
    memoryReservePercent: options.featureGates.enabled("QOSReserved") ? parseQosReserved(config.qosReserved) : undefined,
    memoryThrottlingFactor: options.featureGates.enabled("MemoryQoS") ? config.memoryThrottlingFactor : undefined,
    log: options.log,
    ...(options.mountPoint === undefined ? {} : { mountPoint: options.mountPoint }),
  });
  // Eviction thresholds are not subtracted from the cgroup limit: eviction must act before the kernel's OOM killer does.
  const limits = newAllocatable({ ...capacity, pid: String(machine.maxPids) }, { ...reservations, evictionHard: {} });
  const amounts = {
    milliCpu: quantityOf(limits, "cpu").milliValue(),
    memoryBytes: quantityOf(limits, "memory").value(),
    pids: quantityOf(limits, "pid").value(),
  };
  const { enforceNodeAllocatable: enforce } = config;
  try {
    await cgroups.start(amounts, enforce.includes("pods"));
  } catch (err) {
    throw new ConfigError(`Failed to initialize the cgroups of pods: ${messageOf(err)}`);
  }
  if (config.cgroupsPerQos) notify.node("Normal", "NodeAllocatableEnforced", "Updated Node Allocatable limit across pods");
  for (const [key, title, cgroup, reserved] of [
    ["system-reserved", "System", config.systemReservedCgroup, reservations.system],
    ["kube-reserved", "Kube", config.kubeReservedCgroup, reservations.kube],
  ] as const) {
    if (!enforce.includes(key)) continue;
    try {
      await cgroups.enforceReserved(cgroup, reserved);
    } catch (err) {
      const message = `Failed to enforce ${title} Reserved Cgroup Limits on ${JSON.stringify(cgroup)}: ${messageOf(err)}`;
      notify.node("Warning", "FailedNodeAllocatableEnforcement", message);
      throw new ConfigError(message);
    }
    notify.node("Normal", "NodeAllocatableEnforced", `Updated limits on ${title.toLowerCase()} reserved cgroup ${cgroup}`);
  }
  return cgroups;
}

/** Exists only when the machine was booted with systemd. Source: sd_booted(3) */
const bootedBySystemd = "/run/systemd/system";

function openSystemd({ clock, signal }: { clock: Clock; signal: AbortSignal }): Systemd {
  if (!existsSync(bootedBySystemd)) throw new ConfigError("systemd cgroup manager not available");
  const systemd = new Systemd({ clock });
  signal.addEventListener("abort", () => systemd.close(), { once: true });
  return systemd;
}
