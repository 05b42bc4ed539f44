import { chmod, stat } from "node:fs/promises";
import { Quantity } from "@coxswain/apimachinery/objects/meta/quantity";
import { makeFolder } from "@coxswain/apimachinery/process/files/make-folder";
import type { NodePod } from "../pod/pod.ts";
import { podResources, quantityOf, type ResourceList } from "../pod/pod-resources.ts";
import { podLimits } from "../resources/cgroups.ts";
import { isMounted, type Mounter } from "./mount.ts";
import { setVolumeOwnership } from "./ownership.ts";
import { pluginOf } from "./volume-operations.ts";
import type { VolumePlugin } from "./volume-plugin.ts";

const hugePagesPrefix = "hugepages-";

/** Scratch space with the lifetime of its Pod. Source: pkg/volume/emptydir */
export const emptyDir: VolumePlugin = {
  name: "kubernetes.io~empty-dir",
  supports: (volume) => volume.emptyDir !== undefined,
  async setUp({ pod, volume, isThere, dir, mounter, downward, sizesMemory, operations, log, quotas }) {
    if (isThere) return { path: dir, readOnly: false };
    const { medium, sizeLimit } = volume.emptyDir ?? {};
    if (medium === "HugePages" || medium?.startsWith("HugePages-")) {
      await openDir(dir);
      if (!(await isMounted(dir, mounter))) {
        await mounter.mount("nodev", dir, { type: "hugetlbfs", options: [`pagesize=${hugePageSize(pod, medium)}`] });
      }
    } else if (medium === "Memory") {
      await memoryDir(dir, mounter, sizesMemory ? memorySize(pod, sizeLimit, downward.allocatable) : 0);
    } else if (medium) {
      throw new Error(`unknown storage medium ${JSON.stringify(medium)}`);
    } else {
      await openDir(dir);
    }
    await setVolumeOwnership(dir, pod, { readOnly: false, policy: false, plugin: pluginOf(volume), operations, log });
    if (!medium) await quotas?.assign(dir, isLimited(pod, sizeLimit));
    return { path: dir, readOnly: false };
  },
};

/**
 * Pure: the page size of a volume of huge pages as mount(8) takes it: the one that the Pod requests, which `medium` selects when
 * the Pod requests several.
 */
function hugePageSize({ spec }: Pick<NodePod, "spec">, medium: string): string {
  const requested = [...spec.containers, ...(spec.initContainers ?? [])]
    .flatMap(({ resources }) => Object.keys({ ...resources?.limits, ...resources?.requests }))
    .filter((name) => name.startsWith(hugePagesPrefix))
    .map((name) => Quantity.parse(name.slice(hugePagesPrefix.length)));
  const chosen = medium === "HugePages" ? requested[0] : Quantity.parse(medium.slice("HugePages-".length));
  const isOther = (size: Quantity) => chosen !== undefined && !size.equals(chosen);
  if (chosen === undefined || requested.every(isOther)) {
    throw new Error(`medium ${medium}: hugePages storage requested, but there is no resource request for huge pages`);
  }
  if (medium === "HugePages" && requested.some(isOther)) {
    throw new Error(`medium: ${medium} can't be used if container requests multiple huge page sizes`);
  }
  return String(chosen).replace(/i$/, "");
}

/** True when the volume has a size limit, or the Pod's total ephemeral storage is limited. */
function isLimited(pod: NodePod, sizeLimit: string | undefined): boolean {
  const ofVolume = sizeLimit === undefined ? 0 : Number(Quantity.parse(String(sizeLimit)).value());
  return ofVolume > 0 || Number(podResources(pod, "limits").get("ephemeral-storage")?.value() ?? 0) > 0;
}

/** Creates a world-writable directory, regardless of the umask. */
export async function openDir(dir: string): Promise<void> {
  const there = await stat(dir).catch(() => undefined);
  if (there?.isDirectory() && (there.mode & 0o777) === 0o777) return;
  await makeFolder(dir, 0o777);
  await chmod(dir, 0o777);
}

/** Pure: the smallest of the node's allocatable memory, the Pod's memory limit and the volume's size limit; 0 for no limit. */
export function memorySize(pod: NodePod, sizeLimit: string | undefined, allocatable: ResourceList): number {
  const ofPod = podLimits(pod, { cfsQuota: false, cfsPeriodUs: 0, podPidsLimit: 0 }).memoryBytes;
  const sizes = [quantityOf(allocatable, "memory").value(), ofPod ?? 0, quantityOf({ size: sizeLimit }, "size").value()];
  const known = sizes.filter((size) => size > 0);
  return known.length === 0 ? 0 : Math.min(...known);
}

/**
 * Mounts a tmpfs, so that secrets and tokens are never written to disk. Its mode is 1777, the kernel's default: containers of
 * different users cannot remove each other's files.
 * @param sizeBytes 0 for the kernel's default: half of the machine's memory
 */
export async function memoryDir(dir: string, mounter: Mounter, sizeBytes = 0): Promise<void> {
  await openDir(dir);
  if (await isMounted(dir, mounter)) return;
  await mounter.mount("tmpfs", dir, { type: "tmpfs", options: sizeBytes > 0 ? [`size=${sizeBytes}`] : [] });
  await chmod(dir, 0o1777);
}
