import { chmod, stat } from "node:fs/promises";
import { makeFolder } from "@coxswain/apimachinery/files/make-folder";
import { Quantity } from "@coxswain/apimachinery/meta/quantity";
import type { NodePod } from "../pods/pod.ts";
import { podLimits } from "../resources/cgroups.ts";
import { podResources, quantityOf, type ResourceList } from "../resources/pod-resources.ts";
import { isMounted, type Mounter } from "./mount.ts";
import { setVolumeOwnership } from "./ownership.ts";
import type { VolumePlugin } from "./volume.ts";
import { pluginOf } from "./volume-operations.ts";

/** Scratch space that lives as long as its Pod. Source: pkg/volume/emptydir */
export const emptyDir: VolumePlugin = {
  name: "kubernetes.io~empty-dir",
  supports: (volume) => volume.emptyDir !== undefined,
  async setUp({ pod, volume, isThere, dir, mounter, downward, sizesMemory, operations, quotas }) {
    if (isThere) return { path: dir, readOnly: false };
    const { medium, sizeLimit } = volume.emptyDir ?? {};
    if (medium?.startsWith("HugePages")) {
      await makeFolder(dir);
      const pageSize = medium === "HugePages" ? undefined : medium.slice("HugePages-".length).replace(/i$/, "");
      if ((await mounter.mountsBelow(dir)).length === 0) {
        await mounter.mount("nodev", dir, { type: "hugetlbfs", options: pageSize === undefined ? [] : [`pagesize=${pageSize}`] });
      }
    } else if (medium === "Memory") {
      await memoryDir(dir, mounter, sizesMemory ? memorySize(pod, sizeLimit, downward.allocatable) : 0);
    } else {
      await openDir(dir);
    }
    await setVolumeOwnership(dir, pod, { readOnly: false, policy: false, plugin: pluginOf(volume), operations });
    if (!medium) await quotas?.assign(dir, isLimited(pod, sizeLimit));
    return { path: dir, readOnly: false };
  },
};

/** Of its own, or with all that the Pod writes. */
function isLimited(pod: NodePod, sizeLimit: string | undefined): boolean {
  const ofVolume = sizeLimit === undefined ? 0 : Number(Quantity.parse(String(sizeLimit)).value());
  return ofVolume > 0 || Number(podResources(pod, "limits").get("ephemeral-storage")?.value() ?? 0) > 0;
}

/** A folder that everybody may write to, whatever our umask is. */
export async function openDir(dir: string): Promise<void> {
  await makeFolder(dir, 0o777);
  if (((await stat(dir)).mode & 0o777) !== 0o777) await chmod(dir, 0o777);
}

/** Pure: the least of what the node has, what the Pod may use, and what is said of the volume. */
export function memorySize(pod: NodePod, sizeLimit: string | undefined, allocatable: ResourceList): number {
  const ofPod = podLimits(pod, { cfsQuota: false, cfsPeriodUs: 0, podPidsLimit: 0 }).memoryBytes;
  const sizes = [quantityOf(allocatable, "memory").value(), ofPod ?? 0, quantityOf({ size: sizeLimit }, "size").value()];
  const known = sizes.filter((size) => size > 0);
  return known.length === 0 ? 0 : Math.min(...known);
}

/**
 * A folder in memory: what secrets and tokens are written to never reaches a disk.
 * @param sizeBytes 0 for what the kernel lets it have: half of the machine's memory
 */
export async function memoryDir(dir: string, mounter: Mounter, sizeBytes = 0): Promise<void> {
  await openDir(dir);
  if (await isMounted(dir, mounter)) return;
  await mounter.mount("tmpfs", dir, { type: "tmpfs", options: sizeBytes > 0 ? [`size=${sizeBytes}`] : [] });
  await chmod(dir, 0o777);
}
