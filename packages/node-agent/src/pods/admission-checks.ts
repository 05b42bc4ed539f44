import { safeSysctls } from "@coxswain/apimachinery/objects/meta/pod-security-names";
import { Quantity } from "@coxswain/apimachinery/objects/meta/quantity";
import type { Node, Taint } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { qosClass } from "@coxswain/apimachinery/quota/qos";
import { matchesNode } from "@coxswain/apimachinery/scheduling/node-selector";
import { Tolerations, tolerates } from "@coxswain/apimachinery/scheduling/tolerations";
import { isCriticalPod, isStaticPod, type NodePod } from "../pod/pod.ts";
import { podResources, quantityOf, type ResourceList } from "../pod/pod-resources.ts";
import type { Rejection } from "../pod/pod-verdict.ts";
import type { Pressure } from "../resources/eviction-thresholds.ts";

/** A Pod to admit, and the state of the node. */
interface AdmissionInput {
  pod: NodePod;
  /** Active Pods on this node. */
  others: readonly NodePod[];
  node: Pick<Node, "metadata" | "spec"> & { name: string };
  allocatable: ResourceList;
}

/** A resource that is insufficient for a Pod; CPU in milli-CPUs. */
export interface Shortage {
  resource: string;
  requested: number;
  used: number;
  capacity: number;
}

/**
 * Pure: whether a Pod assigned to this node can run here. The scheduler may have used outdated information or may have been
 * bypassed. Source: pkg/kubelet/lifecycle/predicate.go
 */
export function admitPod(input: AdmissionInput): Rejection | undefined {
  const [shortage] = shortages(input);
  return shortage === undefined ? misplaced(input) : outOf(shortage);
}

/**
 * Pure: a node under pressure admits critical Pods only. Under memory pressure alone, it also admits Pods that are not
 * BestEffort or that tolerate the memory-pressure taint. Source: pkg/kubelet/eviction/eviction_manager.go Admit
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

interface HostPort {
  /** `TCP/8080`. */
  readonly port: string;
  /** `""`: all addresses. */
  readonly ip: string;
}

const hostPortsOf = (pod: NodePod): HostPort[] =>
  pod.spec.containers.flatMap((container) =>
    (container.ports ?? [])
      .filter(({ hostPort }) => (hostPort ?? 0) > 0)
      .map(({ protocol = "TCP", hostPort, hostIP: ip = "" }) => ({
        port: `${protocol}/${hostPort}`,
        ip: ip === "0.0.0.0" || ip === "::" ? "" : ip,
      })),
  );

function portsClash(wanted: readonly HostPort[], others: readonly NodePod[]): boolean {
  const taken = new Map<string, Set<string>>();
  for (const other of others)
    for (const { port, ip } of hostPortsOf(other)) taken.getOrInsertComputed(port, () => new Set()).add(ip);
  return wanted.some(({ port, ip }) => {
    const ips = taken.get(port);
    return ips !== undefined && (ip === "" || ips.has("") || ips.has(ip));
  });
}

/** Pure: all resources of which the node has not enough left. */
export function shortages({ pod, others, allocatable }: AdmissionInput): Shortage[] {
  const found: Shortage[] = [];
  const maxPods = Number(quantityOf(allocatable, "pods").value());
  if (others.length + 1 > maxPods) found.push({ resource: "pods", requested: 1, used: others.length, capacity: maxPods });
  const takenByOthers = others.map((other) => podResources(other, "requests"));
  for (const [name, amount] of podResources(pod, "requests")) {
    if (amount.isZero) continue;
    // Extended resources that the node does not report are handled by the scheduler's extenders.
    if (!isNative(name) && !Object.hasOwn(allocatable, name)) continue;
    let used = Quantity.parse("0");
    for (const resources of takenByOthers) {
      const taken = resources.get(name);
      if (taken !== undefined) used = used.add(taken);
    }
    const capacity = quantityOf(allocatable, name);
    if (used.add(amount).cmp(capacity) <= 0) continue;
    const scale = (quantity: Quantity): number => (name === "cpu" ? quantity.milliValue() : quantity.value());
    found.push({ resource: name, requested: scale(amount), used: scale(used), capacity: scale(capacity) });
  }
  return found;
}

function isNative(name: string): boolean {
  return name === "cpu" || name === "memory" || name === "ephemeral-storage" || name.startsWith("hugepages-");
}

function outOf({ resource, requested, used, capacity }: Shortage): Rejection {
  const message = `Node didn't have enough resource: ${resource}, requested: ${requested}, used: ${used}, capacity: ${capacity}`;
  return { reason: `OutOf${resource}`, message };
}

/** Pure: rejections that preempting other Pods cannot resolve. */
export function misplaced({ pod, others, node }: AdmissionInput): Rejection | undefined {
  const predicate = (name: string): Rejection => ({ reason: name, message: `Predicate ${name} failed` });
  if (!matchesNode(pod, { metadata: { ...node.metadata, name: node.name } })) return predicate("NodeAffinity");
  if (pod.spec.nodeName && pod.spec.nodeName !== node.name) return predicate("NodeName");
  const ports = hostPortsOf(pod);
  if (ports.length > 0 && portsClash(ports, others)) return predicate("NodePorts");
  const taints = isStaticPod(pod) ? [] : (node.spec?.taints ?? []);
  const tolerations = new Tolerations(pod.spec.tolerations);
  if (tolerations.firstUntolerated(taints, ["NoExecute"]) !== undefined) return predicate("TaintToleration");
  return undefined;
}

/** Pure: rejects Pods for another operating system, by label or field. Source: pkg/kubelet/lifecycle/predicate.go */
export function foreignSystem({ metadata, spec }: NodePod): Rejection | undefined {
  const labelled = metadata.labels?.["kubernetes.io/os"];
  if (labelled !== undefined && labelled !== "linux") {
    const message = "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label";
    return { reason: "PodOSSelectorNodeLabelDoesNotMatch", message };
  }
  if (spec.os === undefined || spec.os.name === "linux") return undefined;
  return { reason: "PodOSNotSupported", message: "Failed to admit pod as the OS field doesn't match node OS" };
}

/** Pure: allows safe sysctls and those of `--allowed-unsafe-sysctls`. Source: pkg/kubelet/sysctl/allowlist.go */
export function forbiddenSysctl(pod: NodePod, allowedUnsafeSysctls: readonly string[]): Rejection | undefined {
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
