import type { PersistentVolumeClaim, Pod, Volume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { persistentVolumeClaims } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Plugin } from "../framework/extension-points.ts";
import { unresolvable, unschedulable } from "../framework/status.ts";
import type { PluginContext } from "./plugin-context.ts";

/** A disk that two pods on one node must not share, unless both mount it read-only. */
interface Disk {
  readonly id: string;
  readonly isReadOnly: boolean;
}

/** Source: pkg/scheduler/framework/plugins/volumerestrictions isVolumeConflict */
function disksOf({ gcePersistentDisk, awsElasticBlockStore, iscsi, rbd }: Volume): Disk[] {
  const disk = (id: readonly string[], readOnly = false): Disk => ({ id: JSON.stringify(id), isReadOnly: readOnly });
  if (gcePersistentDisk !== undefined) return [disk(["gce", gcePersistentDisk.pdName], gcePersistentDisk.readOnly)];
  // Conflicts even when both are read-only.
  if (awsElasticBlockStore !== undefined) return [disk(["aws", awsElasticBlockStore.volumeID])];
  if (iscsi !== undefined) return [disk(["iscsi", iscsi.iqn], iscsi.readOnly)];
  // One monitor in common is enough.
  if (rbd !== undefined) return rbd.monitors.map((monitor) => disk(["rbd", monitor, rbd.pool ?? "rbd", rbd.image], rbd.readOnly));
  return [];
}

/** A pure cache, by pod: whether all its volumes of the disk are read-only, by the disk's id. */
const known = new WeakMap<Pod, ReadonlyMap<string, boolean>>();

const disksIn = (pod: Pod): ReadonlyMap<string, boolean> =>
  known.getOrInsertComputed(pod, () => {
    const disks = new Map<string, boolean>();
    for (const { id, isReadOnly } of (pod.spec.volumes ?? []).flatMap(disksOf))
      disks.set(id, isReadOnly && (disks.get(id) ?? true));
    return disks;
  });

function shareDisk(one: ReadonlyMap<string, boolean>, other: ReadonlyMap<string, boolean>): boolean {
  if (one.size > other.size) return shareDisk(other, one);
  for (const [id, isReadOnly] of one) if (other.has(id) && !(isReadOnly && other.get(id))) return true;
  return false;
}

/** Rejects nodes where a pod uses the same exclusive disk; with ReadWriteOncePod, pods whose claim another pod uses. */
export function newVolumeRestrictions({ informers, gates }: Pick<PluginContext, "informers" | "gates">): Plugin {
  const claims = informers.for<PersistentVolumeClaim>(persistentVolumeClaims).lister;
  const oncePod = gates.enabled("ReadWriteOncePod");
  return {
    name: "VolumeRestrictions",
    wakeUpOn: ["Pod/Delete", "Node/Add", "PersistentVolumeClaim/Add", "PersistentVolumeClaim/Update"],
    preFilter(_, { pod }, snapshot) {
      if (!oncePod) return undefined;
      const names = new Set<string>();
      for (const { persistentVolumeClaim } of pod.spec.volumes ?? []) {
        if (persistentVolumeClaim === undefined) continue;
        const { claimName } = persistentVolumeClaim;
        const claim = claims.get(`${pod.metadata.namespace}/${claimName}`);
        if (claim === undefined) return unresolvable(`persistentvolumeclaim "${claimName}" not found`);
        if (claim.spec.accessModes?.includes("ReadWriteOncePod")) names.add(claimName);
      }
      if (names.size === 0) return undefined;
      for (const { pods } of snapshot.nodes) {
        for (const { pod: other } of pods.values()) {
          if (other.metadata.namespace !== pod.metadata.namespace) continue;
          if ((other.spec.volumes ?? []).some((volume) => names.has(volume.persistentVolumeClaim?.claimName ?? "")))
            return unresolvable("node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode");
        }
      }
      return undefined;
    },
    mayRefuse: (_, { pod }) => disksIn(pod).size > 0,
    filter(_, { pod }, node) {
      const disks = disksIn(pod);
      if (disks.size === 0) return undefined;
      for (const { pod: other } of node.pods.values())
        if (shareDisk(disks, disksIn(other))) return unschedulable("node(s) had no available disk");
      return undefined;
    },
  };
}
