import { rm } from "node:fs/promises";
import { join } from "node:path";
import { makeFolder } from "@coxswain/apimachinery/process/files/make-folder";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { serveGrpc, type UnaryHandler } from "../grpc-server.ts";
import type { NodePod } from "../pod/pod.ts";
import { nodesOf } from "../resources/devices/choose-devices.ts";
import type { GivenDevices } from "../resources/devices/device-checkpoint.ts";
import type { MemoryBlock } from "../resources/memory/memory-state.ts";
import type { OpenedManagers } from "../resources/open-resource-managers.ts";
import { newMessageCodec } from "../runtime/messages.ts";

/**
 * The v1 messages; v1alpha1 uses a subset (container names and devices).
 * Source: k8s.io/kubelet pkg/apis/podresources/v1, v1alpha1
 */
const messages = newMessageCodec({
  Empty: {},
  NUMANode: { ID: [1, "int64"] },
  TopologyInfo: { nodes: [1, "NUMANode[]"] },
  ContainerDevices: { resourceName: [1, "string"], deviceIds: [2, "string[]"], topology: [3, "TopologyInfo"] },
  ContainerMemory: { memoryType: [1, "string"], size: [2, "uint64"], topology: [3, "TopologyInfo"] },
  ContainerResources: {
    name: [1, "string"],
    devices: [2, "ContainerDevices[]"],
    cpuIds: [3, "int64[]"],
    memory: [4, "ContainerMemory[]"],
  },
  PodResources: { name: [1, "string"], namespace: [2, "string"], containers: [3, "ContainerResources[]"] },
  ListPodResourcesResponse: { podResources: [1, "PodResources[]"] },
  AllocatableResourcesResponse: {
    devices: [1, "ContainerDevices[]"],
    cpuIds: [2, "int64[]"],
    memory: [3, "ContainerMemory[]"],
  },
});
export const podResourcesMessages = messages;

interface PodResourcesOptions {
  /** `<root-dir>/pod-resources`. */
  dir: string;
  managers: Pick<OpenedManagers, "cpu" | "memory" | "devices">;
  pods: () => readonly NodePod[];
  /** Feature gate KubeletPodResourcesGetAllocatable. */
  allocatable: boolean;
  onRequest?: (version: string) => void;
  log: Logger;
}

/**
 * Serves the pod resources API at `kubelet.sock`: devices, CPUs and memory that are assigned to containers.
 * @throws Error when the socket cannot be served
 * Source: pkg/kubelet/apis/podresources
 */
export async function servePodResources(options: PodResourcesOptions): Promise<{ close(): void }> {
  await makeFolder(options.dir, 0o750);
  const socket = join(options.dir, "kubelet.sock");
  await rm(socket, { force: true });
  const listOf =
    (version: string): UnaryHandler =>
    () => {
      options.onRequest?.(version);
      const podResources = options.pods().map((pod) => resourcesOf(pod, options.managers, version));
      return messages.encode("ListPodResourcesResponse", { podResources });
    };
  const getAllocatable: UnaryHandler = () => {
    options.onRequest?.("v1");
    if (!options.allocatable) throw new Error("Pod Resources API GetAllocatableResources disabled");
    return messages.encode("AllocatableResourcesResponse", allocatableOf(options.managers));
  };
  return serveGrpc({
    socket,
    methods: {
      "/v1.PodResourcesLister/List": listOf("v1"),
      "/v1alpha1.PodResourcesLister/List": listOf("v1alpha1"),
      "/v1.PodResourcesLister/GetAllocatableResources": getAllocatable,
    },
    log: options.log,
  });
}

const placeOf = (nodes: readonly number[]) => ({ nodes: nodes.map((ID) => ({ ID })) });

/** Pure: the resources of a Pod's containers. Devices without NUMA node have no topology. */
function resourcesOf(pod: NodePod, { cpu, memory, devices }: PodResourcesOptions["managers"], version: string): object {
  const { name, namespace, uid } = pod.metadata;
  const containers = pod.spec.containers.map((container) => {
    const own = { name: container.name, devices: devices.givenTo(uid, container.name).flatMap(byNode) };
    if (version === "v1alpha1") {
      return { ...own, devices: own.devices.map(({ resourceName, deviceIds }) => ({ resourceName, deviceIds })) };
    }
    return {
      ...own,
      cpuIds: cpu.exclusiveCpusOf(uid, container.name),
      memory: memory.blocksOf(uid, container.name).map(writtenBlock),
    };
  });
  return { name, namespace, containers };
}

function byNode({ resource, byNode: ids }: GivenDevices) {
  return [...ids].map(([node, deviceIds]) => ({
    resourceName: resource,
    deviceIds,
    ...(node >= 0 && { topology: placeOf([node]) }),
  }));
}

const writtenBlock = ({ type, sizeBytes, nodes }: MemoryBlock) => ({
  memoryType: type,
  size: sizeBytes,
  topology: placeOf(nodes),
});

function allocatableOf({ cpu, memory, devices }: PodResourcesOptions["managers"]): object {
  const all = [...devices.healthy()].flatMap(([resourceName, list]) =>
    list.map((device) => ({
      resourceName,
      deviceIds: [device.ID],
      ...(device.topology !== null && { topology: placeOf(nodesOf(device)) }),
    })),
  );
  return { devices: all, cpuIds: cpu.allocatable(), memory: memory.allocatable().map(writtenBlock) };
}
