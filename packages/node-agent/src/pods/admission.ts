import type { AgentConfig } from "../config.ts";
import type { OwnNode } from "../node/own-node.ts";
import type { DeviceManager } from "../resources/devices/device-manager.ts";
import { quantityOf, type ResourceList } from "../resources/pod-resources.ts";
import type { ResourceManagers } from "../resources/resource-managers.ts";
import type { NodeShutdown } from "../shutdown/node-shutdown.ts";
import { admitPod, forbiddenSysctl, foreignSystem, misplaced, type Rejection, shortages, underPressure } from "./admit.ts";
import type { PodIntakeOptions } from "./intake.ts";
import { isCriticalPod } from "./pod.ts";
import type { Preempt } from "./preempt.ts";

export interface AdmissionOptions {
  config: Pick<AgentConfig, "allowedUnsafeSysctls">;
  nodeName: string;
  node: Pick<OwnNode, "known" | "pressure">;
  allocatable: () => ResourceList;
  managers: Pick<ResourceManagers, "concerns" | "admit">;
  devices: Pick<DeviceManager, "inUse">;
  shutdown: Pick<NodeShutdown, "refusal"> | undefined;
  /** Makes room for a Pod that the cluster cannot do without. */
  preempt: Preempt;
}

/**
 * Everybody who may refuse a Pod, in upstream's order: pressure and sysctls, those who give resources out (only what they
 * are asked for), what the scheduler looked at (critical Pods get their resources from others), the machine's shutdown.
 */
export function newAdmission(options: AdmissionOptions): PodIntakeOptions["admit"] {
  const { nodeName, node, allocatable, managers, devices, shutdown, preempt } = options;
  const { allowedUnsafeSysctls } = options.config;
  return (pod, others) => {
    const refused = underPressure(pod, node.pressure()) ?? forbiddenSysctl(pod, allowedUnsafeSysctls);
    if (refused !== undefined) return refused;
    const admit = (): Rejection | undefined | Promise<Rejection | undefined> => {
      const input = {
        pod,
        others,
        node: { ...node.known(), name: nodeName },
        allocatable: atLeast(allocatable(), devices.inUse()),
      };
      const foreign = foreignSystem(pod);
      if (foreign !== undefined || !isCriticalPod(pod)) return foreign ?? admitPod(input) ?? shutdown?.refusal();
      const missing = shortages(input);
      const obstacle = misplaced(input);
      if (obstacle !== undefined || missing.length === 0) return obstacle ?? shutdown?.refusal();
      return preempt(pod, others, missing).then((rejection) => rejection ?? shutdown?.refusal());
    };
    return managers.concerns(pod) ? managers.admit(pod).then((rejection) => rejection ?? admit()) : admit();
  };
}

/** What Pods hold of a plugin's devices is there for them, also while the plugin is away for a moment. */
function atLeast(allocatable: ResourceList, inUse: ResourceList): ResourceList {
  const raised = Object.entries(inUse).filter(([name]) => quantityOf(inUse, name).cmp(quantityOf(allocatable, name)) > 0);
  return { ...allocatable, ...Object.fromEntries(raised) };
}
