import type { PersistentVolume, PersistentVolumeClaim } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { persistentVolumeClaims, persistentVolumes, storageClasses } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { StorageClass } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import { classNameOf } from "@coxswain/apimachinery/volumes/matching";
import type { Plugin } from "../framework/extension-points.ts";
import { type Status, unresolvable } from "../framework/status.ts";
import type { PluginContext } from "./plugin-context.ts";

const zoneLabels = [
  "failure-domain.beta.kubernetes.io/zone",
  "failure-domain.beta.kubernetes.io/region",
  "topology.kubernetes.io/zone",
  "topology.kubernetes.io/region",
];

/** Matches zone and region labels of bound volumes with those of the node. Source: pkg/scheduler/framework/plugins/volumezone */
export function newVolumeZone({ informers }: Pick<PluginContext, "informers">): Plugin {
  const claims = informers.for<PersistentVolumeClaim>(persistentVolumeClaims).lister;
  const volumes = informers.for<PersistentVolume>(persistentVolumes).lister;
  const classes = informers.for<StorageClass>(storageClasses).lister;

  /** undefined for an unbound claim of a WaitForFirstConsumer class, which does not restrict nodes. */
  const volumeOf = (claim: PersistentVolumeClaim): PersistentVolume | Status | undefined => {
    const { volumeName = "" } = claim.spec;
    if (volumeName !== "") return volumes.get(volumeName) ?? unresolvable(`persistentvolume "${volumeName}" not found`);
    const className = classNameOf(claim);
    if (className === "") return unresolvable("PersistentVolumeClaim had no pv name and storageClass name");
    const storageClass = classes.get(className);
    if (storageClass === undefined) return unresolvable(`storageclass.storage.k8s.io "${className}" not found`);
    const { volumeBindingMode } = storageClass;
    if (volumeBindingMode === undefined)
      return unresolvable(`VolumeBindingMode not set for StorageClass ${JSON.stringify(className)}`);
    return volumeBindingMode === "WaitForFirstConsumer" ? undefined : unresolvable("PersistentVolume had no name");
  };

  return {
    name: "VolumeZone",
    wakeUpOn: [
      "StorageClass/Add",
      "Node/Add",
      "Node/UpdateLabel",
      "PersistentVolumeClaim/Add",
      "PersistentVolume/Add",
      "PersistentVolume/Update",
    ],
    mayRefuse: (_, { pod }) =>
      pod.spec.volumes?.some(({ persistentVolumeClaim }) => persistentVolumeClaim !== undefined) === true,
    filter(_, { pod }, { node }) {
      const labels = node.metadata.labels ?? {};
      const inUse = (pod.spec.volumes ?? []).flatMap(({ persistentVolumeClaim }) => persistentVolumeClaim ?? []);
      if (inUse.length === 0 || !zoneLabels.some((label) => labels[label] !== undefined)) return undefined;
      for (const { claimName } of inUse) {
        if (claimName === "") return unresolvable("PersistentVolumeClaim had no name");
        const claim = claims.get(`${pod.metadata.namespace}/${claimName}`);
        if (claim === undefined) return unresolvable(`persistentvolumeclaim "${claimName}" not found`);
        const volume = volumeOf(claim);
        if (volume === undefined) continue;
        if ("code" in volume) return volume;
        for (const label of zoneLabels) {
          const zones = zonesIn(volume.metadata.labels?.[label]);
          if (zones !== undefined && !zones.includes(labels[label] ?? ""))
            return unresolvable("node(s) had no available volume zone");
        }
      }
      return undefined;
    },
  };
}

/** `a__b` means two zones; undefined for an invalid label, which is ignored. Source: cloud-provider LabelZonesToSet */
function zonesIn(label: string | undefined): string[] | undefined {
  const zones = label?.split("__").map((zone) => zone.trim());
  return zones?.includes("") ? undefined : zones;
}
