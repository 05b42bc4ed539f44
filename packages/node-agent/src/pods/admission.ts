import type { AgentConfig } from "../agent-config.ts";
import type { OwnNode } from "../node/own-node.ts";
import { isCriticalPod } from "../pod/pod.ts";
import { quantityOf, type ResourceList } from "../pod/pod-resources.ts";
import type { DeviceManager } from "../resources/devices/device-manager.ts";
import type { ResourceManagers } from "../resources/resource-managers.ts";
import type { NodeShutdown } from "../shutdown/node-shutdown.ts";
import { admitPod, forbiddenSysctl, foreignSystem, misplaced, shortages, underPressure } from "./admission-checks.ts";
import type { PodIntakeOptions } from "./intake.ts";
import type { Preempt } from "./preempt.ts";

export interface AdmissionOptions {
  config: Pick<AgentConfig, "allowedUnsafeSysctls">;
  nodeName: string;
  node: Pick<OwnNode, "known" | "pressure">;
  allocatable: () => ResourceList;
  managers: Pick<ResourceManagers, "concerns" | "admit">;
  devices: Pick<DeviceManager, "inUse">;
  shutdown: Pick<NodeShutdown, "refusal"> | undefined;
  /** Makes resources available for critical Pods. */
  preempt: Preempt;
}

/**
 * Admission checks in upstream's order: pressure and sysctls, resource managers (only for Pods that they concern), the
 * scheduler's predicates (critical Pods preempt others), node shutdown.
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

/** Returns the first rejection; synchronous as long as no check returns a promise. */
function firstRefusal(checks: readonly (() => Answer)[]): Answer {
  for (const [i, check] of checks.entries()) {
    const answer = check();
    if (answer instanceof Promise) return answer.then((rejection) => rejection ?? firstRefusal(checks.slice(i + 1)));
    if (answer !== undefined) return answer;
  }
  return undefined;
}

/** Raises allocatable to the allocated amount: devices stay available to their Pods while the plugin is disconnected. */
function atLeast(allocatable: ResourceList, inUse: ResourceList): ResourceList {
  const raised = Object.entries(inUse).filter(([name]) => quantityOf(inUse, name).cmp(quantityOf(allocatable, name)) > 0);
  return { ...allocatable, ...Object.fromEntries(raised) };
}
