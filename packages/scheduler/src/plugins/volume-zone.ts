import type { PersistentVolume, PersistentVolumeClaim } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { persistentVolumeClaims, persistentVolumes, storageClasses } from "@coxswain/apimachinery/schema/kinds/resources";
import type { StorageClass } from "@coxswain/apimachinery/schema/kinds/storage/v1";
import { classNameOf } from "@coxswain/apimachinery/volumes/matching";
import type { Plugin } from "../framework/extension-points.ts";
import type { PluginContext } from "../framework/plugin-context.ts";
import { type Status, unresolvable } from "../framework/status.ts";

const zoneLabels = [
  "failure-domain.beta.kubernetes.io/zone",
  "failure-domain.beta.kubernetes.io/region",
  "topology.kubernetes.io/zone",
  "topology.kubernetes.io/region",
];

/** A pod goes where its bound volumes' zone and region labels allow. Source: pkg/scheduler/framework/plugins/volumezone */
export function newVolumeZone({ informers }: Pick<PluginContext, "informers">): Plugin {
  const claims = informers.for<PersistentVolumeClaim>(persistentVolumeClaims).lister;
  const volumes = informers.for<PersistentVolume>(persistentVolumes).lister;
  const classes = informers.for<StorageClass>(storageClasses).lister;

  /** undefined: not bound yet, and that is fine. */
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

/** `a__b` is two zones; a label that cannot be read does not count. Source: cloud-provider LabelZonesToSet */
function zonesIn(label: string | undefined): string[] | undefined {
  const zones = label?.split("__").map((zone) => zone.trim());
  return zones?.includes("") ? undefined : zones;
}
