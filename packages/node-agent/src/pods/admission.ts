import type { AgentConfig } from "../config.ts";
import type { OwnNode } from "../node/own-node.ts";
import type { DeviceManager } from "../resources/devices/device-manager.ts";
import { quantityOf, type ResourceList } from "../resources/pod-resources.ts";
import type { ResourceManagers } from "../resources/resource-managers.ts";
import type { NodeShutdown } from "../shutdown/node-shutdown.ts";
import { admitPod, forbiddenSysctl, foreignSystem, misplaced, shortages, underPressure } from "./admit.ts";
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
  const fit: PodIntakeOptions["admit"] = (pod, others) => {
    const input = {
      pod,
      others,
      node: { ...node.known(), name: nodeName },
      allocatable: atLeast(allocatable(), devices.inUse()),
    };
    if (!isCriticalPod(pod)) return admitPod(input);
    const missing = shortages(input);
    return misplaced(input) ?? (missing.length === 0 ? undefined : preempt(pod, others, missing));
  };
  return (pod, others) =>
    firstRefusal([
      () => underPressure(pod, node.pressure()),
      () => forbiddenSysctl(pod, allowedUnsafeSysctls),
      () => (managers.concerns(pod) ? managers.admit(pod) : undefined),
      () => foreignSystem(pod),
      () => fit(pod, others),
      () => shutdown?.refusal(),
    ]);
}

type Answer = ReturnType<PodIntakeOptions["admit"]>;

/** At once as long as nobody has to be waited for. */
function firstRefusal(judges: readonly (() => Answer)[]): Answer {
  for (const [i, judge] of judges.entries()) {
    const answer = judge();
    if (answer instanceof Promise) return answer.then((rejection) => rejection ?? firstRefusal(judges.slice(i + 1)));
    if (answer !== undefined) return answer;
  }
  return undefined;
}

/** What Pods hold of a plugin's devices is there for them, also while the plugin is away for a moment. */
function atLeast(allocatable: ResourceList, inUse: ResourceList): ResourceList {
  const raised = Object.entries(inUse).filter(([name]) => quantityOf(inUse, name).cmp(quantityOf(allocatable, name)) > 0);
  return { ...allocatable, ...Object.fromEntries(raised) };
}
