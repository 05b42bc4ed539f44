import { joinedFailures } from "@coxswain/apimachinery/objects/errors/joined-failures";
import { Quantity } from "@coxswain/apimachinery/objects/meta/quantity";
import { formatTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Node, NodeAddress, NodeCondition, NodeStatus } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { kubernetesRelease } from "@coxswain/apimachinery/process/release";
import { allocatable, type EvictionThresholds, type Reserved } from "../resources/allocatable.ts";
import type { DeviceCounts } from "../resources/devices/device-manager.ts";
import type { Machine } from "../resources/machine.ts";
import type { Cri } from "../runtime/cri-schema.ts";
import { runtimeVersion } from "./runtime-version.ts";

export interface NodeStatusInput {
  machine: Machine;
  hostname: string;
  /** Node IPs; the first of each family is the InternalIP. */
  ips: readonly string[];
  maxPods: number;
  storageBytes: number;
  reserved: { kube: Reserved; system: Reserved; evictionHard: EvictionThresholds };
  /** Extended resources of device plugins. */
  devices?: { capacity: DeviceCounts; allocatable: DeviceCounts };
  runtime: { name: string; version: string } | undefined;
  kubeletPort: number;
  images: readonly Cri<"Image">[];
  /** -1 for no limit. */
  maxImages: number;
  conditions: NodeConditionInput;
  /** Volumes that must stay attached; undefined until CSIDrivers are synced. */
  volumesInUse?: readonly string[] | undefined;
  /** The status as stored in the API server. */
  current: NodeStatus | undefined;
  now: number;
}

interface NodeConditionInput {
  /** Reasons why the node is not ready, in order. */
  problems: readonly string[];
  /** Whether AppArmor profiles can be enforced: part of the message. */
  appArmor: boolean;
  memoryPressure: boolean;
  diskPressure: boolean;
  pidPressure: boolean;
}

const kubeletVersion = kubernetesRelease.gitVersion;

/** Fields of the status that have other writers: the attach/detach controller, and the report of dynamic configuration. */
export const foreignFields = ["volumesAttached", "config", "phase"] as const;

/** Pure: the node's status. Source: pkg/kubelet/nodestatus/setters.go */
export function nodeStatus(input: NodeStatusInput): NodeStatus {
  const { machine, current } = input;
  const capacity: Record<string, string> = {
    cpu: String(machine.cpuCount),
    "ephemeral-storage": inBinary(input.storageBytes),
    ...Object.fromEntries(Object.entries(machine.hugePages).map(([size, bytes]) => [`hugepages-${size}`, inBinary(bytes)])),
    memory: inBinary(machine.memoryBytes),
    pods: String(input.maxPods),
  };
  Object.assign(capacity, input.devices?.capacity);
  // Keep extended resources that others have added to the status.
  for (const [name, amount] of Object.entries(current?.capacity ?? {})) {
    if (!Object.hasOwn(capacity, name) && name.includes("/")) capacity[name] = amount;
  }
  const status: NodeStatus = {
    addresses: addresses(input),
    allocatable: {
      ...allocatable(capacity, input.reserved),
      ...input.devices?.allocatable,
    },
    capacity,
    conditions: conditions(input),
    daemonEndpoints: { kubeletEndpoint: { Port: input.kubeletPort } },
    images: imageList(input.images, input.maxImages),
    nodeInfo: {
      architecture: machine.architecture,
      bootID: machine.bootId,
      containerRuntimeVersion:
        input.runtime === undefined ? "" : `${input.runtime.name}://${runtimeVersion(input.runtime.version)}`,
      kernelVersion: machine.kernelVersion,
      kubeProxyVersion: kubeletVersion,
      kubeletVersion,
      machineID: machine.machineId,
      operatingSystem: "linux",
      osImage: machine.osImage,
      systemUUID: machine.systemUuid,
    },
  };
  for (const field of [...foreignFields, "volumesInUse"] as const) {
    if (current?.[field] !== undefined) Object.assign(status, { [field]: current[field] });
  }
  // Also when empty: the patch does not change omitted fields.
  const { volumesInUse } = input;
  if (volumesInUse !== undefined && (volumesInUse.length > 0 || current?.volumesInUse !== undefined)) {
    status.volumesInUse = [...volumesInUse];
  }
  return status;
}

function inBinary(bytes: number): string {
  return Quantity.fromValue(bytes, "BinarySI").toString();
}

function addresses({ ips, hostname }: NodeStatusInput): NodeAddress[] {
  return [...ips.map((address) => ({ type: "InternalIP", address })), { type: "Hostname", address: hostname }];
}

interface Verdict {
  type: string;
  status: "True" | "False";
  reason: string;
  message: string;
}

function conditions({ conditions: input, current, now }: NodeStatusInput): NodeCondition[] {
  const pressure = (type: string, has: boolean, has1: [string, string], hasNot: [string, string]): Verdict => {
    const [reason, message] = has ? has1 : hasNot;
    return { type, status: has ? "True" : "False", reason, message };
  };
  const ready: Verdict =
    input.problems.length === 0
      ? { type: "Ready", status: "True", reason: "KubeletReady", message: readyText(input.appArmor) }
      : { type: "Ready", status: "False", reason: "KubeletNotReady", message: joinedFailures(input.problems) };
  const verdicts: Verdict[] = [
    pressure(
      "MemoryPressure",
      input.memoryPressure,
      ["KubeletHasInsufficientMemory", "kubelet has insufficient memory available"],
      ["KubeletHasSufficientMemory", "kubelet has sufficient memory available"],
    ),
    pressure(
      "DiskPressure",
      input.diskPressure,
      ["KubeletHasDiskPressure", "kubelet has disk pressure"],
      ["KubeletHasNoDiskPressure", "kubelet has no disk pressure"],
    ),
    pressure(
      "PIDPressure",
      input.pidPressure,
      ["KubeletHasInsufficientPID", "kubelet has insufficient PID available"],
      ["KubeletHasSufficientPID", "kubelet has sufficient PID available"],
    ),
    ready,
  ];
  const own = new Set(verdicts.map((verdict) => verdict.type));
  const heartbeat = formatTime(now);
  const made = verdicts.map((verdict): NodeCondition => {
    const before = (current?.conditions ?? []).find((condition) => condition.type === verdict.type);
    const transition = before?.status === verdict.status && before.lastTransitionTime ? before.lastTransitionTime : heartbeat;
    return { ...verdict, lastHeartbeatTime: heartbeat, lastTransitionTime: transition };
  });
  return [...(current?.conditions ?? []).filter((condition) => !own.has(condition.type)), ...made];
}

function readyText(appArmor: boolean): string {
  return `kubelet is posting ready status${appArmor ? ". AppArmor enabled" : ""}`;
}

function imageList(images: readonly Cri<"Image">[], max: number): NonNullable<NodeStatus["images"]> {
  const sorted = [...images].sort((a, b) => b.size - a.size);
  return (max < 0 ? sorted : sorted.slice(0, max)).map((image) => ({
    names: [...image.repoDigests, ...image.repoTags].slice(0, 5),
    sizeBytes: image.size,
  }));
}

/** True when the statuses differ in more than heartbeat times. */
export function statusChanged(a: NodeStatus, b: NodeStatus, equal: (a: unknown, b: unknown) => boolean): boolean {
  const without = (status: NodeStatus): unknown => ({
    ...status,
    conditions: (status.conditions ?? [])
      .map(({ lastHeartbeatTime: _, ...condition }) => condition)
      .sort((x, y) => (x.type < y.type ? -1 : 1)),
  });
  return !equal(without(a), without(b));
}

export interface NodeEvent {
  type: "Normal" | "Warning";
  reason: string;
  message: string;
}

/** Event reasons for conditions that became true or false. */
const conditionEvents: Readonly<Record<string, readonly [isTrue: string, isFalse: string]>> = {
  MemoryPressure: ["NodeHasInsufficientMemory", "NodeHasSufficientMemory"],
  DiskPressure: ["NodeHasDiskPressure", "NodeHasNoDiskPressure"],
  PIDPressure: ["NodeHasInsufficientPID", "NodeHasSufficientPID"],
  Ready: ["NodeReady", "NodeNotReady"],
};

/** Pure: events for the changes from one status to the next. Source: pkg/kubelet/nodestatus/setters.go */
export function nodeEvents(name: string, before: NodeStatus | undefined, after: NodeStatus): NodeEvent[] {
  const bootId = after.nodeInfo?.bootID;
  const bootedAgain = before?.nodeInfo?.bootID && before.nodeInfo.bootID !== bootId;
  const rebooted = {
    type: "Warning",
    reason: "Rebooted",
    message: `Node ${name} has been rebooted, boot id: ${bootId}`,
  } as const;
  const changes = (after.conditions ?? []).flatMap(({ type, status }) => {
    const [isTrue, isFalse] = conditionEvents[type] ?? [];
    const old = before?.conditions?.find((condition) => condition.type === type);
    // No event for the initial Ready condition of a new node.
    if (isTrue === undefined || isFalse === undefined || old?.status === status || (type === "Ready" && !old)) return [];
    return [nodeStatusEvent(name, status === "True" ? isTrue : isFalse)];
  });
  return bootedAgain ? [rebooted, ...changes] : changes;
}

/** The event for a change of a node condition. */
export function nodeStatusEvent(name: string, reason: string): NodeEvent {
  return { type: "Normal", reason, message: `Node ${name} status is now: ${reason}` };
}

/** Set when the attach/detach controller attaches volumes for this node, rather than the kubelet. */
export const attachDetachAnnotation = "volumes.kubernetes.io/controller-managed-attach-detach";

interface InitialNodeInput {
  name: string;
  hostname: string;
  labels: Readonly<Record<string, string>>;
  taints: readonly { key: string; value?: string; effect: string }[];
  schedulable: boolean;
  providerId: string;
  /** `--cloud-provider=external`: keeps Pods away until the cloud's controller manager has initialized the node. */
  externalCloud: boolean;
  architecture: string;
  /** `--enable-controller-attach-detach` and `--keep-terminated-pod-volumes`, published as annotations for the controller. */
  controllerAttachDetach: boolean;
  keepTerminatedPodVolumes: boolean;
}

/** Pure: the Node object to register. Source: pkg/kubelet/kubelet_node_status.go initialNode */
export function initialNode(input: InitialNodeInput): Node {
  const taints = [...input.taints];
  if (!input.schedulable) taints.push({ key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" });
  if (input.externalCloud)
    taints.push({ key: "node.cloudprovider.kubernetes.io/uninitialized", value: "true", effect: "NoSchedule" });
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name: input.name,
      labels: {
        "beta.kubernetes.io/arch": input.architecture,
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": input.architecture,
        "kubernetes.io/hostname": input.hostname,
        "kubernetes.io/os": "linux",
        ...input.labels,
      },
      annotations: {
        ...(input.controllerAttachDetach && { [attachDetachAnnotation]: "true" }),
        ...(input.keepTerminatedPodVolumes && { "volumes.kubernetes.io/keep-terminated-pod-volumes": "true" }),
      },
    },
    spec: {
      ...(taints.length === 0 ? {} : { taints }),
      ...(input.schedulable ? {} : { unschedulable: true }),
      ...(input.providerId === "" ? {} : { providerID: input.providerId }),
    },
    status: {},
  };
}
