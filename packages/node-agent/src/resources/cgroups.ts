import { join } from "node:path";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { entriesOf } from "@coxswain/apimachinery/process/narrowing/keys";
import { type QosClass, qosClass } from "@coxswain/apimachinery/quota/qos";
import type { Systemd } from "../dbus/systemd.ts";
import type { AnyContainer, NodePod } from "../pod/pod.ts";
import { podResources, quantityOf, type ResourceList } from "../pod/pod-resources.ts";
import type { CgroupNaming } from "./cgroup-names.ts";
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
interface NodeAllocatable {
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
  /** The cgroup of all Pods, `/kubepods` or `/kubepods.slice`; the root of the configuration when the runtime decides. */
  readonly ofPods: string;
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
  return new NodeCgroups(options, await openTree(options));
}

class NodeCgroups implements Cgroups {
  readonly ofPods: string;
  readonly #options: CgroupOptions;
  readonly #tree: CgroupTree;
  readonly #naming: CgroupNaming;
  readonly #base: CgroupName;
  readonly #names: Record<QosClass, CgroupName>;
  readonly #paths: Record<QosClass, string>;
  /** UIDs of Pods whose limits this process has already written. */
  readonly #limited = new Set<string>();
  #allocatableBytes = 0;
  readonly #throttlingFactor: number | undefined;
  readonly #memoryQos: boolean;

  constructor(options: CgroupOptions, tree: CgroupTree) {
    this.#options = options;
    this.#tree = tree;
    this.#naming = options.systemd === undefined ? cgroupfsNames : systemdNames;
    const root = cgroupfsNames.parse(options.root);
    this.#base = cgroupName(root, "kubepods");
    this.ofPods = this.#naming.pathOf(options.perQos ? this.#base : root);
    this.#names = {
      Guaranteed: this.#base,
      Burstable: cgroupName(this.#base, "burstable"),
      BestEffort: cgroupName(this.#base, "besteffort"),
    };
    this.#paths = {
      Guaranteed: this.#naming.pathOf(this.#names.Guaranteed),
      Burstable: this.#naming.pathOf(this.#names.Burstable),
      BestEffort: this.#naming.pathOf(this.#names.BestEffort),
    };
    this.#throttlingFactor = this.#tree.unified ? options.memoryThrottlingFactor : undefined;
    this.#memoryQos = this.#throttlingFactor !== undefined;
  }

  async start(allocatable: NodeAllocatable, enforce: boolean): Promise<void> {
    this.#allocatableBytes = allocatable.memoryBytes;
    if (!this.#options.perQos) return;
    for (const path of Object.values(this.#paths)) await this.#tree.make(path);
    const { milliCpu, memoryBytes, pids } = allocatable;
    const limits = { shares: cpuShares(milliCpu), memoryBytes, ...(pids !== undefined && { pids }) };
    if (enforce) await this.#tree.limit(this.#paths.Guaranteed, limits);
    await this.#tree.limit(this.#paths.BestEffort, { shares: 2 });
  }

  async enforceReserved(cgroup: string, reserved: ResourceList): Promise<void> {
    const name = this.#naming.parse(cgroup);
    const path = this.#naming.pathOf(name);
    const shown = `[${name.map((part) => JSON.stringify(part)).join(" ")}]`;
    if (!(await this.#tree.exists(path))) throw new Error(`${shown} cgroup does not exist`);
    const memoryBytes = quantityOf(reserved, "memory").value();
    const limits: CgroupLimits = {
      ...(reserved.cpu !== undefined && { shares: cpuShares(quantityOf(reserved, "cpu").milliValue()) }),
      memoryBytes,
      ...(this.#memoryQos && reserved.memory !== undefined && { memoryMinBytes: memoryBytes }),
      pids: quantityOf(reserved, "pid").value(),
    };
    if (!(await this.#tree.limit(path, limits))) throw new Error(`the limits of cgroup ${shown} cannot be set`);
  }

  parentOf(pod: NodePod): string {
    return this.#options.perQos ? this.#naming.pathOf(this.#nameOfPod(pod)) : "";
  }

  async ensure(pod: NodePod): Promise<void> {
    if (!this.#options.perQos) return;
    const { uid } = pod.metadata;
    const name = this.#nameOfPod(pod);
    const path = this.#naming.pathOf(name);
    if (this.#limited.has(uid) && (await this.#tree.exists(path))) return;
    await this.#tree.make(path).catch((err: Error) => {
      throw new Error(`failed to create container for [${name.join(" ")}] : ${err.message}`);
    });
    await this.#tree.limit(path, podLimits(pod, { ...this.#options, memoryQos: this.#memoryQos }));
    this.#limited.add(uid);
  }

  async exists(uid: string): Promise<boolean> {
    return this.#options.perQos && (await this.#podCgroups()).has(uid);
  }

  async remove(uid: string): Promise<boolean> {
    this.#limited.delete(uid);
    const path = this.#options.perQos ? (await this.#podCgroups()).get(uid) : undefined;
    return path === undefined || this.#tree.remove(path);
  }

  async memoryOfPods(): Promise<{ available: number; capacity: number } | undefined> {
    if (!this.#options.perQos) return undefined;
    const { limitBytes, workingSetBytes } = await this.#tree.memory(this.#paths.Guaranteed);
    return limitBytes === 0 ? undefined : { available: Math.max(0, limitBytes - workingSetBytes), capacity: limitBytes };
  }

  async tasksOf(uid: string): Promise<number> {
    const path = this.#options.perQos ? (await this.#podCgroups()).get(uid) : undefined;
    return path === undefined ? 0 : this.#tree.taskCount(path);
  }

  unifiedOf(container: AnyContainer): Readonly<Record<string, string>> {
    return this.#throttlingFactor === undefined
      ? {}
      : containerMemoryQos(container, { allocatableBytes: this.#allocatableBytes, throttlingFactor: this.#throttlingFactor });
  }

  async list(): Promise<string[]> {
    return this.#options.perQos ? [...(await this.#podCgroups()).keys()] : [];
  }

  async updateClasses(pods: readonly NodePod[]): Promise<void> {
    if (!this.#options.perQos) return;
    let milliCpu = 0;
    for (const pod of pods) {
      if (qosClass(pod) === "Burstable") milliCpu += Number(podResources(pod, "requests").get("cpu")?.milliValue() ?? 0);
    }
    const kept: Partial<Record<QosClass, number>> = this.#memoryQos ? classMemoryMinimums(pods) : {};
    await this.#tree.limit(this.#paths.Burstable, { shares: cpuShares(milliCpu), memoryMinBytes: kept.Burstable });
    await this.#tree.limit(this.#paths.Guaranteed, { memoryMinBytes: kept.Guaranteed });
    if (this.#options.memoryReservePercent === undefined) return;
    const limits = classMemoryLimits(pods, this.#allocatableBytes, this.#options.memoryReservePercent);
    for (const [name, memoryBytes] of entriesOf(limits)) {
      const path = this.#paths[name];
      if (await this.#tree.limit(path, { memoryBytes })) continue;
      // Usage already exceeds the new limit: set the limit to the current usage, so that it cannot grow.
      await this.#tree.limit(path, { memoryBytes: await this.#tree.memoryUsageBytes(path) });
    }
  }

  #nameOfPod(pod: NodePod): CgroupName {
    return cgroupName(this.#names[qosClass(pod)], `pod${pod.metadata.uid}`);
  }

  /** Cgroup paths of Pods, by UID. */
  async #podCgroups(): Promise<Map<string, string>> {
    const found = new Map<string, string>();
    for (const parent of Object.values(this.#paths)) {
      for (const folder of await this.#tree.children(parent)) {
        const name = this.#naming.lastOf(folder);
        if (/^pod./.test(name)) found.set(name.slice("pod".length), join(parent, folder));
      }
    }
    return found;
  }
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
    pod.spec.containers.every((container) => !quantityOf(container.resources?.limits, name).isZero);
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
