import { join } from "node:path";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import { type QosClass, qosClass } from "@coxswain/apimachinery/quota/qos";
import type { Systemd } from "../dbus/systemd.ts";
import type { AnyContainer, NodePod } from "../pod/pod.ts";
import { podResources, quantityOf, type ResourceList } from "../pod/pod-resources.ts";
import { type CgroupName, cgroupfsNames, cgroupName, systemdNames } from "./cgroup-names.ts";
import { type CgroupLimits, type CgroupTree, openCgroupTree } from "./cgroup-tree.ts";
import { cpuQuotaUs, cpuShares } from "./container-resources.ts";
import { classMemoryMinimums, containerMemoryQos } from "./memory-qos.ts";
import { classMemoryLimits } from "./qos-reserve.ts";
import { newSystemdTree } from "./systemd-tree.ts";

export interface CgroupOptions {
  /** `--cgroup-root`: `/` or a cgroup that exists in every controller. */
  root: string;
  /** `--cgroup-driver=systemd`: cgroups are systemd slices. Undefined for `cgroupfs`. */
  systemd?: Systemd | undefined;
  /** `--cgroups-per-qos`; when false, the container runtime chooses the parent cgroup. */
  perQos: boolean;
  cfsQuota: boolean;
  cfsPeriodUs: number;
  /** `--pod-max-pids`; -1 means no limit. */
  podPidsLimit: number;
  /** `--qos-reserved`: percentage of requested memory that lower QoS classes cannot use; undefined for none. */
  memoryReservePercent?: number | undefined;
  /**
   * Set with the feature gate MemoryQoS: requested memory is protected from reclaim, and containers are throttled
   * above this fraction of their memory limit. Applies to cgroup v2 only.
   */
  memoryThrottlingFactor?: number | undefined;
  log: Logger;
  /** Where the controllers are mounted; overridden in tests. */
  mountPoint?: string;
}

/** The node's allocatable resources, applied as limits of the `kubepods` cgroup. */
export interface NodeAllocatable {
  milliCpu: number;
  memoryBytes: number;
  /** Processes; absent for no limit. */
  pids?: number;
}

/** Pod and QoS cgroups of the node. */
export interface Cgroups {
  /**
   * Creates `kubepods`, `kubepods/burstable` and `kubepods/besteffort`.
   * @param enforce whether `allocatable` is written to the limits of `kubepods`
   * @throws Error when cgroups cannot be written
   */
  start(allocatable: NodeAllocatable, enforce: boolean): Promise<void>;
  /**
   * Applies the reservation as limits of the cgroup of system daemons or of Kubernetes daemons.
   * @param cgroup as the driver writes it: `/system`, `/system.slice`
   * @throws Error when the cgroup does not exist or the kernel rejects the limits
   */
  enforceReserved(cgroup: string, reserved: ResourceList): Promise<void>;
  /**
   * The parent cgroup of a Pod's containers, `/kubepods/burstable/pod<uid>` or
   * `/kubepods.slice/…/kubepods-burstable-pod<uid>.slice`; `""` when the runtime decides.
   */
  parentOf(pod: NodePod): string;
  /** Creates the Pod's cgroup with its limits if it does not exist. @throws Error when it cannot be created */
  ensure(pod: NodePod): Promise<void>;
  exists(uid: string): Promise<boolean>;
  /** Removes the Pod's cgroup; false while processes are left in it. */
  remove(uid: string): Promise<boolean>;
  /** Memory limit of all Pods together and what is left of it; undefined when no limit is enforced. */
  memoryOfPods(): Promise<{ available: number; capacity: number } | undefined>;
  /** Number of processes and threads of the Pod; 0 when it has no cgroup. */
  tasksOf(uid: string): Promise<number>;
  /** UIDs of all Pods that have a cgroup, including Pods that no longer exist. */
  list(): Promise<string[]>;
  /** Additional cgroup v2 files for a container (the CRI's `unified` map); `{}` for none. */
  unifiedOf(container: AnyContainer): Readonly<Record<string, string>>;
  /** Updates the limits of the QoS cgroups from the requests of the Pods in them. */
  updateClasses(pods: readonly NodePod[]): Promise<void>;
}

/**
 * Pod cgroups grouped by QoS class.
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
  /** UIDs of Pods whose limits this process has already written. */
  const limited = new Set<string>();
  let allocatableBytes = 0;
  const throttlingFactor = tree.unified ? options.memoryThrottlingFactor : undefined;
  const memoryQos = throttlingFactor !== undefined;

  /** Cgroup paths of Pods, by UID. */
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
        // Usage already exceeds the new limit: set the limit to the current usage, so that it cannot grow.
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

/** Pure: limits of a Pod's cgroup. CPU and memory are limited only when every container has a limit. */
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
