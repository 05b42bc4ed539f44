import { safeSysctls } from "@coxswain/apimachinery/meta/pod-security-names";
import { Quantity } from "@coxswain/apimachinery/meta/quantity";
import { qosClass } from "@coxswain/apimachinery/quota/qos";
import { matchesNode } from "@coxswain/apimachinery/scheduling/node-selector";
import { tolerates, untolerated as untoleratedTaint } from "@coxswain/apimachinery/scheduling/tolerations";
import type { Node, Taint } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { Pressure } from "../resources/eviction.ts";
import { podResources, quantityOf, type ResourceList } from "../resources/pod-resources.ts";
import { isCriticalPod, isStaticPod, type NodePod } from "./pod.ts";

export interface AdmissionInput {
  pod: NodePod;
  /** What runs here already, without Pods that have ended. */
  others: readonly NodePod[];
  node: Pick<Node, "metadata" | "spec"> & { name: string };
  allocatable: ResourceList;
  allowedUnsafeSysctls: readonly string[];
}

export interface Rejection {
  reason: string;
  message: string;
}

/**
 * Pure: whether a Pod that was given to this node can run here; the scheduler may have decided on old news, or not at all.
 * Source: pkg/kubelet/lifecycle/predicate.go, pkg/kubelet/sysctl/allowlist.go
 */
export function admitPod(input: AdmissionInput): Rejection | undefined {
  return forbiddenSysctl(input) ?? missingResource(input) ?? misplaced(input) ?? untolerated(input);
}

/**
 * Pure: a node that runs out of something takes no more Pods but critical ones; out of memory still those that say how
 * much they need, or put up with it. Source: pkg/kubelet/eviction/eviction_manager.go Admit
 */
export function underPressure(pod: NodePod, pressure: Pressure): Rejection | undefined {
  const names = [
    ...(pressure.memory ? ["MemoryPressure"] : []),
    ...(pressure.disk ? ["DiskPressure"] : []),
    ...(pressure.pid ? ["PIDPressure"] : []),
  ];
  if (names.length === 0 || isCriticalPod(pod)) return undefined;
  if (names.length === 1 && pressure.memory) {
    const taint: Taint = { key: "node.kubernetes.io/memory-pressure", effect: "NoSchedule" };
    if (qosClass(pod) !== "BestEffort") return undefined;
    if ((pod.spec.tolerations ?? []).some((toleration) => tolerates(toleration, taint))) return undefined;
  }
  return { reason: "Evicted", message: `The node had condition: [${names.join(" ")}]. ` };
}

const hostPortOf = (pod: NodePod): string[] =>
  pod.spec.containers.flatMap((container) =>
    (container.ports ?? [])
      .filter((port) => (port.hostPort ?? 0) > 0)
      .map((port) => `${port.protocol ?? "TCP"}/${port.hostIP ?? "0.0.0.0"}/${port.hostPort}`),
  );

function portsClash(a: readonly string[], b: readonly string[]): boolean {
  return a.some((left) =>
    b.some((right) => {
      const [leftProtocol, leftIp = "", leftPort] = left.split("/");
      const [rightProtocol, rightIp = "", rightPort] = right.split("/");
      const sameIp = leftIp === rightIp || [leftIp, rightIp].some((ip) => ip === "0.0.0.0" || ip === "::" || ip === "");
      return leftProtocol === rightProtocol && leftPort === rightPort && sameIp;
    }),
  );
}

function missingResource({ pod, others, allocatable }: AdmissionInput): Rejection | undefined {
  const maxPods = quantityOf(allocatable, "pods").value();
  if (others.length + 1 > Number(maxPods)) return outOf("pods", 1, others.length, Number(maxPods));
  const wanted = podResources(pod, "requests");
  for (const [name, amount] of wanted) {
    if (amount.isZero) continue;
    // What the node does not know at all is the scheduler's and its extenders' business.
    if (!isNative(name) && !Object.hasOwn(allocatable, name)) continue;
    let used = Quantity.parse("0");
    for (const other of others) {
      const taken = podResources(other, "requests").get(name);
      if (taken !== undefined) used = used.add(taken);
    }
    const capacity = quantityOf(allocatable, name);
    if (used.add(amount).cmp(capacity) <= 0) continue;
    const scale = (quantity: Quantity): number => (name === "cpu" ? quantity.milliValue() : quantity.value());
    return outOf(name, scale(amount), scale(used), scale(capacity));
  }
  return undefined;
}

function isNative(name: string): boolean {
  return name === "cpu" || name === "memory" || name === "ephemeral-storage" || name.startsWith("hugepages-");
}

function outOf(resource: string, requested: number, used: number, capacity: number): Rejection {
  const message = `Node didn't have enough resource: ${resource}, requested: ${requested}, used: ${used}, capacity: ${capacity}`;
  return { reason: `OutOf${resource}`, message };
}

function misplaced({ pod, others, node }: AdmissionInput): Rejection | undefined {
  const predicate = (name: string): Rejection => ({ reason: name, message: `Predicate ${name} failed` });
  if (!matchesNode(pod, { metadata: { ...node.metadata, name: node.name } })) return predicate("NodeAffinity");
  if (pod.spec.nodeName && pod.spec.nodeName !== node.name) return predicate("NodeName");
  const ports = hostPortOf(pod);
  if (ports.length > 0 && others.some((other) => portsClash(ports, hostPortOf(other)))) return predicate("NodePorts");
  return undefined;
}

function untolerated({ pod, node }: AdmissionInput): Rejection | undefined {
  if (isStaticPod(pod)) return undefined;
  const taint = untoleratedTaint(node.spec?.taints ?? [], pod.spec.tolerations ?? [], ["NoExecute"]);
  if (taint === undefined) return undefined;
  return { reason: "TaintToleration", message: "Predicate TaintToleration failed" };
}

/** Pure: a Pod may set what reaches nobody else, and what was allowed by name. */
export function forbiddenSysctl({
  pod,
  allowedUnsafeSysctls,
}: Pick<AdmissionInput, "pod" | "allowedUnsafeSysctls">): Rejection | undefined {
  const forbidden = (message: string): Rejection => ({ reason: "SysctlForbidden", message });
  for (const { name: written } of pod.spec.securityContext?.sysctls ?? []) {
    const name = written.replaceAll("/", ".");
    const allowed = [...safeSysctls, ...allowedUnsafeSysctls].some((pattern) =>
      pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern,
    );
    if (!allowed) return forbidden(`forbidden sysctl: ${JSON.stringify(written)} not allowlisted`);
    if (pod.spec.hostNetwork && name.startsWith("net.")) {
      return forbidden(`forbidden sysctl: ${JSON.stringify(written)} not allowed with host net enabled`);
    }
    if (
      pod.spec.hostIPC &&
      (name.startsWith("kernel.shm") || name.startsWith("kernel.msg") || name === "kernel.sem" || name.startsWith("fs.mqueue."))
    ) {
      return forbidden(`forbidden sysctl: ${JSON.stringify(written)} not allowed with host ipc enabled`);
    }
  }
  return undefined;
}
