import { join } from "node:path";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import { qosClass } from "@coxswain/apimachinery/quota/qos";
import type { NodePod } from "../pods/pod.ts";
import { type CgroupLimits, openCgroupTree } from "./cgroup-tree.ts";
import { cpuQuotaUs, cpuShares } from "./container-resources.ts";
import { podResources, quantityOf, type ResourceList } from "./pod-resources.ts";
import { classMemoryLimits } from "./qos-reserve.ts";

export interface CgroupOptions {
  /** `--cgroup-root`: `/` or a cgroup that exists in every controller. */
  root: string;
  /** `--cgroups-per-qos`; without it containers go where the runtime puts them. */
  perQos: boolean;
  cfsQuota: boolean;
  cfsPeriodUs: number;
  /** `--pod-max-pids`; -1 is without limit. */
  podPidsLimit: number;
  /** `--qos-reserved`: percentage of requested memory that is kept from the classes below; undefined for none. */
  memoryReservePercent?: number | undefined;
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
   * @throws Error when there is no such cgroup, or the kernel refuses the limits
   */
  enforceReserved(cgroup: string, reserved: ResourceList): Promise<void>;
  /** The parent of a Pod's containers; `""` when the runtime decides. */
  parentOf(pod: NodePod): string;
  ensure(pod: NodePod): Promise<void>;
  exists(uid: string): Promise<boolean>;
  /** Takes the Pod's cgroup away; false while processes are left in it. */
  remove(uid: string): Promise<boolean>;
  /** Pods that have a cgroup here, wanted or not. */
  list(): Promise<string[]>;
  /** Limits of the classes follow what their Pods ask for. */
  updateClasses(pods: readonly NodePod[]): Promise<void>;
}

/**
 * Pod cgroups, in classes by quality of service.
 * Source: pkg/kubelet/cm/pod_container_manager_linux.go, qos_container_manager_linux.go, node_container_manager_linux.go
 */
export async function newCgroups(options: CgroupOptions): Promise<Cgroups> {
  const tree = await openCgroupTree(options);
  const base = join("/", options.root, "kubepods");
  const classes = { Guaranteed: base, Burstable: join(base, "burstable"), BestEffort: join(base, "besteffort") };
  let allocatableBytes = 0;

  const pathOfUid = async (uid: string): Promise<string | undefined> => {
    for (const parent of Object.values(classes)) {
      if ((await tree.children(parent)).includes(`pod${uid}`)) return join(parent, `pod${uid}`);
    }
    return undefined;
  };

  return {
    async start(allocatable, enforce) {
      if (!options.perQos) return;
      allocatableBytes = allocatable.memoryBytes;
      for (const path of Object.values(classes)) await tree.make(path);
      const { milliCpu, memoryBytes, pids } = allocatable;
      if (enforce) await tree.limit(base, { shares: cpuShares(milliCpu), memoryBytes, ...(pids !== undefined && { pids }) });
      await tree.limit(classes.BestEffort, { shares: 2 });
    },
    async enforceReserved(cgroup, reserved) {
      if (!(await tree.exists(cgroup))) throw new Error(`${JSON.stringify(cgroup)} cgroup does not exist`);
      const limits: CgroupLimits = {
        ...(reserved.cpu !== undefined && { shares: cpuShares(quantityOf(reserved, "cpu").milliValue()) }),
        memoryBytes: quantityOf(reserved, "memory").value(),
        pids: quantityOf(reserved, "pid").value(),
      };
      if (!(await tree.limit(cgroup, limits))) throw new Error(`the limits of cgroup ${JSON.stringify(cgroup)} cannot be set`);
    },
    parentOf: (pod) => (options.perQos ? join(classes[qosClass(pod)], `pod${pod.metadata.uid}`) : ""),
    async ensure(pod) {
      if (!options.perQos) return;
      const path = join(classes[qosClass(pod)], `pod${pod.metadata.uid}`);
      await tree.make(path);
      await tree.limit(path, podLimits(pod, options));
    },
    exists: async (uid) => options.perQos && (await pathOfUid(uid)) !== undefined,
    async remove(uid) {
      const path = options.perQos ? await pathOfUid(uid) : undefined;
      return path === undefined || tree.remove(path);
    },
    async list() {
      if (!options.perQos) return [];
      const uids = new Set<string>();
      for (const parent of Object.values(classes)) {
        for (const name of await tree.children(parent)) if (/^pod./.test(name)) uids.add(name.slice(3));
      }
      return [...uids];
    },
    async updateClasses(pods) {
      if (!options.perQos) return;
      let milliCpu = 0;
      for (const pod of pods) {
        if (qosClass(pod) === "Burstable") milliCpu += Number(podResources(pod, "requests").get("cpu")?.milliValue() ?? 0);
      }
      await tree.limit(classes.Burstable, { shares: cpuShares(milliCpu) });
      if (options.memoryReservePercent === undefined) return;
      const limits = classMemoryLimits(pods, allocatableBytes, options.memoryReservePercent);
      for (const [name, memoryBytes] of Object.entries(limits)) {
        const path = classes[name as keyof typeof limits];
        if (await tree.limit(path, { memoryBytes })) continue;
        // More is in use already than may be: at least it shall not grow.
        await tree.limit(path, { memoryBytes: await tree.memoryUsageBytes(path) });
      }
    },
  };
}

/** Pure: a Pod is limited only where each of its containers is. */
export function podLimits(
  pod: NodePod,
  options: { cfsQuota: boolean; cfsPeriodUs: number; podPidsLimit: number },
): { shares: number; quotaUs?: number; memoryBytes?: number; pids?: number } {
  const requests = podResources(pod, "requests");
  const limits = podResources(pod, "limits");
  const everyContainer = (name: string): boolean =>
    pod.spec.containers.every((container) => container.resources?.limits?.[name] !== undefined);
  const milliCpu = Number(requests.get("cpu")?.milliValue() ?? 0);
  const cpuLimit = everyContainer("cpu") ? Number(limits.get("cpu")?.milliValue() ?? 0) : 0;
  const memoryLimit = everyContainer("memory") ? Number(limits.get("memory")?.value() ?? 0) : 0;
  return {
    shares: cpuShares(milliCpu),
    ...(options.cfsQuota && cpuLimit > 0 ? { quotaUs: cpuQuotaUs(cpuLimit, options.cfsPeriodUs) } : {}),
    ...(memoryLimit > 0 ? { memoryBytes: memoryLimit } : {}),
    ...(options.podPidsLimit > 0 ? { pids: options.podPidsLimit } : {}),
  };
}
