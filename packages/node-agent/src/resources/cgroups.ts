import { join } from "node:path";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import { type QosClass, qosClass } from "@coxswain/apimachinery/quota/qos";
import type { Systemd } from "../dbus/systemd.ts";
import type { AnyContainer, NodePod } from "../pods/pod.ts";
import { type CgroupName, cgroupfsNames, cgroupName, systemdNames } from "./cgroup-names.ts";
import { type CgroupLimits, type CgroupTree, openCgroupTree } from "./cgroup-tree.ts";
import { cpuQuotaUs, cpuShares } from "./container-resources.ts";
import { classMemoryMinimums, containerMemoryQos } from "./memory-qos.ts";
import { podResources, quantityOf, type ResourceList } from "./pod-resources.ts";
import { classMemoryLimits } from "./qos-reserve.ts";
import { newSystemdTree } from "./systemd-tree.ts";

export interface CgroupOptions {
  /** `--cgroup-root`: `/` or a cgroup that exists in every controller. */
  root: string;
  /** `--cgroup-driver=systemd`: cgroups are slices of systemd's. Undefined for `cgroupfs`. */
  systemd?: Systemd | undefined;
  /** `--cgroups-per-qos`; without it containers go where the runtime puts them. */
  perQos: boolean;
  cfsQuota: boolean;
  cfsPeriodUs: number;
  /** `--pod-max-pids`; -1 is without limit. */
  podPidsLimit: number;
  /** `--qos-reserved`: percentage of requested memory that is kept from the classes below; undefined for none. */
  memoryReservePercent?: number | undefined;
  /**
   * With the gate MemoryQoS: memory that is asked for is kept from being reclaimed, and containers are slowed down from
   * this share of their limit on. Only on version 2 of the hierarchy.
   */
  memoryThrottlingFactor?: number | undefined;
  log: Logger;
  /** Where the controllers are mounted; another folder in tests. */
  mountPoint?: string;
}

/** What the node keeps for Pods, written to the limits of the `kubepods` cgroup. */
export interface NodeAllocatable {
  milliCpu: number;
  memoryBytes: number;
  /** Processes; absent for no limit. */
  pids?: number;
}

export interface Cgroups {
  /** Makes `kubepods`, `kubepods/burstable` and `kubepods/besteffort`. @throws Error when cgroups cannot be written. */
  start(allocatable: NodeAllocatable, enforce: boolean): Promise<void>;
  /**
   * Holds what is not Kubernetes, or Kubernetes' own daemons, to what is reserved for them.
   * @param cgroup as the driver writes it: `/system`, `/system.slice`
   * @throws Error when there is no such cgroup, or the kernel refuses the limits
   */
  enforceReserved(cgroup: string, reserved: ResourceList): Promise<void>;
  /**
   * The parent of a Pod's containers, `/kubepods/burstable/pod<uid>` or `/kubepods.slice/…/kubepods-burstable-pod<uid>.slice`;
   * `""` when the runtime decides.
   */
  parentOf(pod: NodePod): string;
  /** Makes the Pod's cgroup with its limits, unless it is there. @throws Error */
  ensure(pod: NodePod): Promise<void>;
  exists(uid: string): Promise<boolean>;
  /** Takes the Pod's cgroup away; false while processes are left in it. */
  remove(uid: string): Promise<boolean>;
  /** What all Pods together may use of memory, and what of it is left; undefined where they are not held to any. */
  memoryOfPods(): Promise<{ available: number; capacity: number } | undefined>;
  /** Processes and threads that the Pod has; 0 where it has no cgroup. */
  tasksOf(uid: string): Promise<number>;
  /** Pods that have a cgroup here, wanted or not. */
  list(): Promise<string[]>;
  /** What a container's own cgroup is told besides its limits, by files of version 2 of the hierarchy; `{}` for nothing. */
  unifiedOf(container: AnyContainer): Readonly<Record<string, string>>;
  /** Limits of the classes follow what their Pods ask for. */
  updateClasses(pods: readonly NodePod[]): Promise<void>;
}

/**
 * Pod cgroups, in classes by quality of service.
 * Source: pkg/kubelet/cm/pod_container_manager_linux.go, qos_container_manager_linux.go, node_container_manager_linux.go
 */
export async function newCgroups(options: CgroupOptions): Promise<Cgroups> {
  const tree = await openTree(options);
  const naming = options.systemd === undefined ? cgroupfsNames : systemdNames;
  const base = cgroupName(cgroupfsNames.parse(options.root), "kubepods");
  const names: Record<QosClass, CgroupName> = {
    Guaranteed: base,
    Burstable: cgroupName(base, "burstable"),
    BestEffort: cgroupName(base, "besteffort"),
  };
  const paths = {
    Guaranteed: naming.pathOf(names.Guaranteed),
    Burstable: naming.pathOf(names.Burstable),
    BestEffort: naming.pathOf(names.BestEffort),
  };
  const nameOfPod = (pod: NodePod): CgroupName => cgroupName(names[qosClass(pod)], `pod${pod.metadata.uid}`);
  /** Pods whose cgroup this process has given its limits. */
  const limited = new Set<string>();
  let allocatableBytes = 0;
  const throttlingFactor = tree.unified ? options.memoryThrottlingFactor : undefined;
  const memoryQos = throttlingFactor !== undefined;

  /** The cgroups of Pods, by uid. */
  async function podCgroups(): Promise<Map<string, string>> {
    const found = new Map<string, string>();
    for (const parent of Object.values(paths)) {
      for (const folder of await tree.children(parent)) {
        const name = naming.lastOf(folder);
        if (/^pod./.test(name)) found.set(name.slice("pod".length), join(parent, folder));
      }
    }
    return found;
  }

  return {
    async start(allocatable, enforce) {
      allocatableBytes = allocatable.memoryBytes;
      if (!options.perQos) return;
      for (const path of Object.values(paths)) await tree.make(path);
      const { milliCpu, memoryBytes, pids } = allocatable;
      const limits = { shares: cpuShares(milliCpu), memoryBytes, ...(pids !== undefined && { pids }) };
      if (enforce) await tree.limit(paths.Guaranteed, limits);
      await tree.limit(paths.BestEffort, { shares: 2 });
    },
    async enforceReserved(cgroup, reserved) {
      const name = naming.parse(cgroup);
      const path = naming.pathOf(name);
      const shown = `[${name.map((part) => JSON.stringify(part)).join(" ")}]`;
      if (!(await tree.exists(path))) throw new Error(`${shown} cgroup does not exist`);
      const memoryBytes = quantityOf(reserved, "memory").value();
      const limits: CgroupLimits = {
        ...(reserved.cpu !== undefined && { shares: cpuShares(quantityOf(reserved, "cpu").milliValue()) }),
        memoryBytes,
        ...(memoryQos && reserved.memory !== undefined && { memoryMinBytes: memoryBytes }),
        pids: quantityOf(reserved, "pid").value(),
      };
      if (!(await tree.limit(path, limits))) throw new Error(`the limits of cgroup ${shown} cannot be set`);
    },
    parentOf: (pod) => (options.perQos ? naming.pathOf(nameOfPod(pod)) : ""),
    async ensure(pod) {
      if (!options.perQos) return;
      const { uid } = pod.metadata;
      const name = nameOfPod(pod);
      const path = naming.pathOf(name);
      if (limited.has(uid) && (await tree.exists(path))) return;
      await tree.make(path).catch((err: Error) => {
        throw new Error(`failed to create container for [${name.join(" ")}] : ${err.message}`);
      });
      await tree.limit(path, podLimits(pod, { ...options, memoryQos }));
      limited.add(uid);
    },
    exists: async (uid) => options.perQos && (await podCgroups()).has(uid),
    async remove(uid) {
      limited.delete(uid);
      const path = options.perQos ? (await podCgroups()).get(uid) : undefined;
      return path === undefined || tree.remove(path);
    },
    async memoryOfPods() {
      if (!options.perQos) return undefined;
      const { limitBytes, workingSetBytes } = await tree.memory(paths.Guaranteed);
      return limitBytes === 0 ? undefined : { available: Math.max(0, limitBytes - workingSetBytes), capacity: limitBytes };
    },
    async tasksOf(uid) {
      const path = options.perQos ? (await podCgroups()).get(uid) : undefined;
      return path === undefined ? 0 : tree.taskCount(path);
    },
    unifiedOf: (container) =>
      throttlingFactor === undefined ? {} : containerMemoryQos(container, { allocatableBytes, throttlingFactor }),
    list: async () => (options.perQos ? [...(await podCgroups()).keys()] : []),
    async updateClasses(pods) {
      if (!options.perQos) return;
      let milliCpu = 0;
      for (const pod of pods) {
        if (qosClass(pod) === "Burstable") milliCpu += Number(podResources(pod, "requests").get("cpu")?.milliValue() ?? 0);
      }
      const kept: Partial<Record<QosClass, number>> = memoryQos ? classMemoryMinimums(pods) : {};
      await tree.limit(paths.Burstable, { shares: cpuShares(milliCpu), memoryMinBytes: kept.Burstable });
      await tree.limit(paths.Guaranteed, { memoryMinBytes: kept.Guaranteed });
      if (options.memoryReservePercent === undefined) return;
      const limits = classMemoryLimits(pods, allocatableBytes, options.memoryReservePercent);
      for (const [name, memoryBytes] of Object.entries(limits)) {
        const path = paths[name as keyof typeof limits];
        if (await tree.limit(path, { memoryBytes })) continue;
        // More is in use already than may be: at least it shall not grow.
        await tree.limit(path, { memoryBytes: await tree.memoryUsageBytes(path) });
      }
    },
  };
}

async function openTree(options: CgroupOptions): Promise<CgroupTree> {
  const { systemd, cfsPeriodUs, log } = options;
  const files = await openCgroupTree({ ...options, besideSystemd: systemd !== undefined });
  return systemd === undefined ? files : newSystemdTree({ systemd, files, cfsPeriodUs, log });
}

/** Pure: a Pod is limited only where each of its containers is. */
export function podLimits(
  pod: NodePod,
  options: { cfsQuota: boolean; cfsPeriodUs: number; podPidsLimit: number; memoryQos?: boolean },
): CgroupLimits {
  const requests = podResources(pod, "requests");
  const limits = podResources(pod, "limits");
  const everyContainer = (name: string): boolean =>
    pod.spec.containers.every((container) => container.resources?.limits?.[name] !== undefined);
  const milliCpu = Number(requests.get("cpu")?.milliValue() ?? 0);
  const cpuLimit = everyContainer("cpu") ? Number(limits.get("cpu")?.milliValue() ?? 0) : 0;
  const memoryRequest = options.memoryQos === true ? Number(requests.get("memory")?.value() ?? 0) : 0;
  const memoryLimit = everyContainer("memory") ? Number(limits.get("memory")?.value() ?? 0) : 0;
  return {
    shares: cpuShares(milliCpu),
    ...(options.cfsQuota && cpuLimit > 0 ? { quotaUs: cpuQuotaUs(cpuLimit, options.cfsPeriodUs) } : {}),
    ...(memoryLimit > 0 ? { memoryBytes: memoryLimit } : {}),
    ...(memoryRequest > 0 ? { memoryMinBytes: memoryRequest } : {}),
    ...(options.podPidsLimit > 0 ? { pids: options.podPidsLimit } : {}),
  };
}
