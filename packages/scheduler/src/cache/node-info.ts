import { hasManyValues } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { Quantity } from "@coxswain/apimachinery/objects/meta/quantity";
import type { Container, Node, Pod, Taint } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { Tolerations } from "@coxswain/apimachinery/scheduling/tolerations";
import { type PodAffinityTerms, parseAffinity } from "./affinity-terms.ts";

/** Resource amounts as numbers: cpu in millicores, memory and storage in bytes, others in units. */
interface Resources {
  milliCpu: number;
  memory: number;
  ephemeralStorage: number;
  pods: number;
  scalars: Map<string, number>;
}

/** A pod with the values that plugins derive from its spec, computed once. */
export interface PodInfo {
  readonly pod: Pod;
  readonly requests: Resources;
  /** Requests, with upstream's default for containers without cpu or memory requests; for scoring only. */
  readonly nonZero: { readonly milliCpu: number; readonly memory: number };
  /** `protocol/port` → requested host IPs. */
  readonly hostPorts: ReadonlyMap<string, ReadonlySet<string>>;
  readonly tolerations: Tolerations;
  /** Comparing the pod with one node may take milliseconds. */
  readonly isLarge: boolean;
  /** Absent for a pod without pod affinity and anti-affinity. */
  readonly affinity?: PodAffinityTerms;
}

/** Fewer values in a pod's spec are compared with a node in microseconds. */
const fewValues = 512;
const defaultMilliCpuRequest = 100;
const defaultMemoryRequest = 200 * 1024 * 1024;

/** A node with its allocatable resources, its pods and the resources they request. */
export interface NodeInfo {
  readonly name: string;
  node: Node;
  taints: readonly Taint[];
  allocatable: Resources;
  readonly pods: Map<string, PodInfo>;
  /** The subset of `pods` with affinity or anti-affinity terms. */
  readonly podsWithAffinity: Set<PodInfo>;
  readonly requested: Resources;
  /** Number of `pods` with required anti-affinity. */
  refusing: number;
  readonly nonZeroRequested: { milliCpu: number; memory: number };
  /** `protocol/port` → host IPs in use. */
  readonly usedPorts: Map<string, Set<string>>;
  /** Incremented with each change of `pods`. */
  version: number;
  /** Image name → size in bytes. */
  images: ReadonlyMap<string, number>;
}

const noResources = (): Resources => ({ milliCpu: 0, memory: 0, ephemeralStorage: 0, pods: 0, scalars: new Map() });

/** The node as the scheduler sees it, without pods. A changed Node is passed to `setNode`. */
export function newNodeInfo(node: Node): NodeInfo {
  const info: NodeInfo = {
    name: node.metadata.name ?? "",
    node,
    taints: [],
    allocatable: noResources(),
    pods: new Map(),
    podsWithAffinity: new Set(),
    requested: noResources(),
    refusing: 0,
    nonZeroRequested: { milliCpu: 0, memory: 0 },
    usedPorts: new Map(),
    version: 0,
    images: new Map(),
  };
  setNode(info, node);
  return info;
}

/** A copy to which pods can be added, and from which they can be removed, without affecting the original. */
export function cloneNodeInfo(info: NodeInfo): NodeInfo {
  return {
    ...info,
    pods: new Map(info.pods),
    podsWithAffinity: new Set(info.podsWithAffinity),
    requested: { ...info.requested, scalars: new Map(info.requested.scalars) },
    nonZeroRequested: { ...info.nonZeroRequested },
    usedPorts: new Map([...info.usedPorts].map(([port, addresses]) => [port, new Set(addresses)])),
  };
}

/** Replaces the node; taints, allocatable resources and images are derived from it. */
export function setNode(info: NodeInfo, node: Node): void {
  info.node = node;
  info.taints = node.spec?.taints ?? [];
  info.allocatable = noResources();
  add(info.allocatable, resourcesOf(node.status?.allocatable));
  info.images = new Map(
    (node.status?.images ?? []).flatMap((image) =>
      (image.names ?? []).map((name): [string, number] => [name, Number(image.sizeBytes ?? 0)]),
    ),
  );
}

/** Adds a pod and its requests; replaces a pod with the same uid. */
export function addPod(info: NodeInfo, pod: PodInfo): void {
  const uid = pod.pod.metadata.uid ?? "";
  removePod(info, uid);
  info.pods.set(uid, pod);
  info.version++;
  if (pod.affinity !== undefined) info.podsWithAffinity.add(pod);
  if (refuses(pod)) info.refusing++;
  addRequests(info, pod);
  for (const [port, ips] of pod.hostPorts) {
    const used = info.usedPorts.getOrInsertComputed(port, () => new Set());
    for (const ip of ips) used.add(ip);
  }
}

/** Removes a pod and its requests; no-op for an unknown uid. */
export function removePod(info: NodeInfo, uid: string): void {
  const pod = info.pods.get(uid);
  if (pod === undefined) return;
  info.pods.delete(uid);
  info.version++;
  info.podsWithAffinity.delete(pod);
  if (refuses(pod)) info.refusing--;
  if (isExact(info)) addRequests(info, pod, -1);
  else recount(info);
  for (const [port, ips] of pod.hostPorts) {
    const used = info.usedPorts.get(port);
    for (const ip of ips) used?.delete(ip);
    if (used?.size === 0) info.usedPorts.delete(port);
  }
}

function refuses({ affinity }: PodInfo): boolean {
  return affinity !== undefined && affinity.requiredAnti.length > 0;
}

function addRequests({ requested, nonZeroRequested }: NodeInfo, { requests, nonZero }: PodInfo, sign: 1 | -1 = 1): void {
  add(requested, requests, sign);
  nonZeroRequested.milliCpu += sign * nonZero.milliCpu;
  nonZeroRequested.memory += sign * nonZero.memory;
}

/**
 * False for sums that are rounded. Anybody can create a pod on a node that requests 2^63 of something; when the kubelet has refused it,
 * subtracting it from a rounded sum would leave the node's other pods without what they request.
 */
function isExact({ requested, nonZeroRequested }: NodeInfo): boolean {
  const { milliCpu, memory, ephemeralStorage, scalars } = requested;
  const most = Math.max(milliCpu, memory, ephemeralStorage, nonZeroRequested.milliCpu, nonZeroRequested.memory);
  if (most > Number.MAX_SAFE_INTEGER) return false;
  for (const amount of scalars.values()) if (amount > Number.MAX_SAFE_INTEGER) return false;
  return true;
}

function recount(info: NodeInfo): void {
  Object.assign(info.requested, noResources());
  info.nonZeroRequested.milliCpu = 0;
  info.nonZeroRequested.memory = 0;
  for (const pod of info.pods.values()) addRequests(info, pod);
}

/** A pure cache, by identity: cluster events check every waiting pod, and objects from a lister never change. */
const known = new WeakMap<Pod, PodInfo>();

/** A pure cache, by identity: most events ask for each waiting pod, and reading a large one takes milliseconds. */
const largeness = new WeakMap<Pod, boolean>();

/** Whether comparing the pod with one node, or reading it for the first time, may take milliseconds. */
export function isLarge(pod: Pod): boolean {
  return largeness.getOrInsertComputed(pod, () => hasManyValues(pod.spec, fewValues));
}

/** @param pod must not be mutated afterwards: the result is cached by identity */
export function newPodInfo(pod: Pod): PodInfo {
  return known.getOrInsertComputed(pod, compute);
}

/**
 * Requests are the sum over containers or the largest init container, whichever is greater, plus the pod overhead.
 * Source: pkg/scheduler/framework/types.go calculateResource; resource/helpers.go PodRequestsAndLimits
 */
function compute(pod: Pod): PodInfo {
  const requests = noResources();
  const nonZero = { milliCpu: 0, memory: 0 };
  for (const container of pod.spec.containers) {
    add(requests, resourcesOf(container.resources?.requests));
    const least = withMinimum(container);
    nonZero.milliCpu += least.milliCpu;
    nonZero.memory += least.memory;
  }
  for (const container of pod.spec.initContainers ?? []) {
    raise(requests, resourcesOf(container.resources?.requests));
    const least = withMinimum(container);
    nonZero.milliCpu = Math.max(nonZero.milliCpu, least.milliCpu);
    nonZero.memory = Math.max(nonZero.memory, least.memory);
  }
  const overhead = resourcesOf(pod.spec.overhead);
  add(requests, overhead);
  nonZero.milliCpu += overhead.milliCpu;
  nonZero.memory += overhead.memory;
  requests.pods = 1;
  const affinity = parseAffinity(pod);
  return {
    pod,
    requests,
    nonZero,
    hostPorts: hostPortsOf(pod),
    tolerations: new Tolerations(pod.spec.tolerations),
    isLarge: isLarge(pod),
    ...(affinity === undefined ? {} : { affinity }),
  };
}

function withMinimum(container: Container): { milliCpu: number; memory: number } {
  const requests = container.resources?.requests;
  const wanted = resourcesOf(requests);
  return {
    milliCpu: requests?.["cpu"] === undefined ? defaultMilliCpuRequest : wanted.milliCpu,
    memory: requests?.["memory"] === undefined ? defaultMemoryRequest : wanted.memory,
  };
}

function hostPortsOf(pod: Pod): Map<string, Set<string>> {
  const ports = new Map<string, Set<string>>();
  for (const container of pod.spec.containers) {
    for (const { hostPort, hostIP, protocol = "TCP" } of container.ports ?? [])
      if (hostPort) ports.getOrInsertComputed(`${protocol}/${hostPort}`, () => new Set()).add(hostIP || "0.0.0.0");
  }
  return ports;
}

const zero = Quantity.parse("0");
const quantity = (text: string): Quantity => Quantity.tryParse(text) ?? zero;

function resourcesOf(list: Readonly<Record<string, string>> | undefined): Resources {
  const resources = noResources();
  for (const [name, text] of Object.entries(list ?? {})) {
    if (name === "cpu") resources.milliCpu = quantity(text).milliValue();
    else if (name === "memory") resources.memory = quantity(text).value();
    else if (name === "ephemeral-storage") resources.ephemeralStorage = quantity(text).value();
    else if (name === "pods") resources.pods = quantity(text).value();
    else resources.scalars.set(name, quantity(text).value());
  }
  return resources;
}

function add(target: Resources, other: Resources, sign = 1): void {
  target.milliCpu += sign * other.milliCpu;
  target.memory += sign * other.memory;
  target.ephemeralStorage += sign * other.ephemeralStorage;
  target.pods += sign * other.pods;
  for (const [name, amount] of other.scalars) target.scalars.set(name, (target.scalars.get(name) ?? 0) + sign * amount);
}

function raise(target: Resources, other: Resources): void {
  target.milliCpu = Math.max(target.milliCpu, other.milliCpu);
  target.memory = Math.max(target.memory, other.memory);
  target.ephemeralStorage = Math.max(target.ephemeralStorage, other.ephemeralStorage);
  for (const [name, amount] of other.scalars) target.scalars.set(name, Math.max(target.scalars.get(name) ?? 0, amount));
}
