import { keyOf, type ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { Pod, Volume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { VolumeId } from "@coxswain/apimachinery/volumes/volume-id";
import type { AttachableVolume, Resolved } from "./volume.ts";

/** A volume and the Pods that need it on one node. */
export interface DesiredVolume {
  readonly volume: AttachableVolume;
  readonly pods: ReadonlySet<ObjectKey>;
}

/** Desired attachments, derived from the Pods scheduled to nodes. */
export interface DesiredVolumes {
  /**
   * Replaces the desired volumes of a Pod.
   * @returns the affected volumes
   */
  set(pod: Pod, needsVolumes: boolean): VolumeId[];
  has(pod: ObjectKey): boolean;
  /**
   * Removes a deleted Pod.
   * @returns the affected volumes
   */
  forget(pod: ObjectKey): VolumeId[];
  /** Desired attachments of one volume by node name. */
  of(id: VolumeId): ReadonlyMap<string, DesiredVolume>;
  ids(): Iterable<VolumeId>;
}

interface Entry {
  readonly node: string;
  /** Volumes by their name in the Pod. */
  readonly volumes: ReadonlyMap<string, AttachableVolume>;
}

const none: ReadonlyMap<string, DesiredVolume> = new Map();

/**
 * @param resolve resolves a volume of a Pod. While the result is `unknown` the previous one is kept: a claim that
 * disappears from the cache must not detach the volume of a running Pod
 */
export function newDesiredVolumes(resolve: (pod: Pod, volume: Volume) => Resolved): DesiredVolumes {
  const byPod = new Map<ObjectKey, Entry>();
  const byVolume = new Map<VolumeId, Map<string, { volume: AttachableVolume; pods: Set<ObjectKey> }>>();

  const remove = (pod: ObjectKey): VolumeId[] => {
    const entry = byPod.get(pod);
    if (entry === undefined) return [];
    byPod.delete(pod);
    for (const { id } of entry.volumes.values()) {
      const nodes = byVolume.get(id);
      const desired = nodes?.get(entry.node);
      desired?.pods.delete(pod);
      if (desired?.pods.size === 0) nodes?.delete(entry.node);
      if (nodes?.size === 0) byVolume.delete(id);
    }
    return idsOf(entry);
  };
  const add = (pod: ObjectKey, entry: Entry): void => {
    if (entry.volumes.size === 0) return;
    byPod.set(pod, entry);
    for (const volume of entry.volumes.values()) {
      const nodes = byVolume.getOrInsertComputed(volume.id, () => new Map());
      const pods = nodes.get(entry.node)?.pods ?? new Set();
      nodes.set(entry.node, { volume, pods: pods.add(pod) });
    }
  };

  return {
    set(pod, needsVolumes) {
      const key = keyOf(pod);
      const node = pod.spec.nodeName ?? "";
      const before = byPod.get(key);
      const volumes = new Map<string, AttachableVolume>();
      for (const volume of needsVolumes ? (pod.spec.volumes ?? []) : []) {
        const now = resolve(pod, volume);
        const known = now === "unknown" && before?.node === node ? before.volumes.get(volume.name) : now;
        if (typeof known === "object") volumes.set(volume.name, known);
      }
      const affected = new Set([...remove(key), ...idsOf({ node, volumes })]);
      add(key, { node, volumes });
      return [...affected];
    },
    has: (pod) => byPod.has(pod),
    forget: remove,
    of: (id) => byVolume.get(id) ?? none,
    ids: () => byVolume.keys(),
  };
}

function idsOf({ volumes }: Entry): VolumeId[] {
  return [...volumes.values()].map(({ id }) => id);
}
