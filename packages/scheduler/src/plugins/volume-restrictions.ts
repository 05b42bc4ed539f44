import type { PersistentVolumeClaim, Volume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { persistentVolumeClaims } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Plugin } from "../framework/extension-points.ts";
import { unresolvable, unschedulable } from "../framework/status.ts";
import type { PluginContext } from "./plugin-context.ts";

/**
 * Volume types whose disks two pods on one node must not share, unless both mount them read-only.
 * Source: pkg/scheduler/framework/plugins/volumerestrictions isVolumeConflict
 */
const conflicts: readonly ((a: Volume, b: Volume) => boolean)[] = [
  ({ gcePersistentDisk: a }, { gcePersistentDisk: b }) => isShared(a, b, (one, other) => one.pdName === other.pdName),
  // Conflicts even when both are read-only.
  ({ awsElasticBlockStore: a }, { awsElasticBlockStore: b }) => a !== undefined && b !== undefined && a.volumeID === b.volumeID,
  ({ iscsi: a }, { iscsi: b }) => isShared(a, b, (one, other) => one.iqn === other.iqn),
  ({ rbd: a }, { rbd: b }) =>
    isShared(
      a,
      b,
      (one, other) =>
        one.monitors.some((monitor) => other.monitors.includes(monitor)) &&
        (one.pool ?? "rbd") === (other.pool ?? "rbd") &&
        one.image === other.image,
    ),
];

function isShared<T extends { readOnly?: boolean }>(
  a: T | undefined,
  b: T | undefined,
  isSame: (one: T, other: T) => boolean,
): boolean {
  return a !== undefined && b !== undefined && isSame(a, b) && !(a.readOnly && b.readOnly);
}

const mayConflict = ({ gcePersistentDisk, awsElasticBlockStore, rbd, iscsi }: Volume): boolean =>
  [gcePersistentDisk, awsElasticBlockStore, rbd, iscsi].some((source) => source !== undefined);

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
    filter(_, { pod }, node) {
      const risky = (pod.spec.volumes ?? []).filter(mayConflict);
      if (risky.length === 0) return undefined;
      for (const { pod: other } of node.pods.values())
        for (const theirs of other.spec.volumes ?? [])
          if (risky.some((own) => conflicts.some((conflict) => conflict(own, theirs))))
            return unschedulable("node(s) had no available disk");
      return undefined;
    },
  };
}
