import { flexVolumeOf } from "@coxswain/apimachinery/flex-volumes/volume";
import type { Lister } from "@coxswain/apimachinery/informers/lister";
import { toKey } from "@coxswain/apimachinery/meta/object-key";
import type {
  PersistentVolume,
  PersistentVolumeClaim,
  PersistentVolumeSource,
  Pod,
  Volume,
} from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { CSIDriver, CSINode } from "@coxswain/apimachinery/schema/kinds/storage/v1";
import { claimNameOf, notMadeFor } from "@coxswain/apimachinery/volumes/claims-of-pod";
import { translated, translatedInline } from "@coxswain/apimachinery/volumes/csi-translation";
import { isMigratedOnNode, type MigratedPlugin, migratedPluginOf } from "@coxswain/apimachinery/volumes/migration";
import type { FlexAttacher } from "./flex-attacher.ts";
import { type AttachableFlexVolume, type AttachableVolume, attachable, attachableFlex, type CsiVolume } from "./volume.ts";

/** Where volumes of Pods are looked up. */
export interface VolumeSources {
  readonly claims: Lister<PersistentVolumeClaim>;
  readonly volumes: Lister<PersistentVolume>;
  readonly drivers: Lister<CSIDriver>;
  readonly nodes: Lister<CSINode>;
  readonly gates: { enabled(name: string): boolean };
  readonly flex: Pick<FlexAttacher, "attaches">;
}

/** What is known of a Pod's volume: `unknown` when its claim is not bound, or not seen, yet. */
export type Resolved = AttachableVolume | "not attached" | "unknown";

/** Source: pkg/controller/volume/attachdetach/util CreateVolumeSpec */
export function resolve(pod: Pod, volume: Volume, sources: VolumeSources): Resolved {
  const claimName = claimNameOf(pod, volume);
  if (claimName === undefined) return inlineVolume(volume, pod, sources) ?? "not attached";
  const claim = sources.claims.get(toKey(pod.metadata.namespace, claimName));
  if (claim === undefined || (volume.ephemeral !== undefined && notMadeFor(pod, claim) !== undefined)) return "unknown";
  const { volumeName } = claim.spec;
  if (!volumeName || claim.status?.phase !== "Bound") return "unknown";
  const bound = sources.volumes.get(volumeName);
  if (bound === undefined || bound.spec.claimRef?.uid !== claim.metadata.uid) return "unknown";
  if (bound.spec.flexVolume !== undefined) return flexVolume(volume, sources, bound) ?? "not attached";
  const csi = asCsi(bound, pod, sources);
  return unlessDriverRefrains(csi === undefined ? undefined : attachable(csi), sources) ?? "not attached";
}

/** @param bound the volume of the Pod's claim; absent for one that stands in the Pod itself */
function flexVolume(volume: Volume, { flex }: VolumeSources, bound?: PersistentVolume): AttachableFlexVolume | undefined {
  const source = bound === undefined ? volume.flexVolume : bound.spec.flexVolume;
  if (source === undefined || !flex.attaches(source.driver)) return undefined;
  const { name = volume.name } = bound?.metadata ?? {};
  const { readOnly = false } = volume.flexVolume ?? volume.persistentVolumeClaim ?? {};
  return attachableFlex(flexVolumeOf(source, { name, readOnly }), bound);
}

/** A volume that stands in the Pod itself: a flex driver's, or an in-tree plugin's that a CSI driver has taken over. */
function inlineVolume(volume: Volume, pod: Pod, sources: VolumeSources): AttachableVolume | undefined {
  if (volume.flexVolume !== undefined) return flexVolume(volume, sources);
  const migrated = migratedPluginOf(volume as PersistentVolumeSource, sources.gates);
  if (migrated === undefined || !isOnNode(migrated, pod, sources)) return undefined;
  const csi = translatedInline(volume, migrated.plugin, pod.metadata.namespace ?? "");
  const found = csi && unlessDriverRefrains(attachable(csi), sources);
  return found && { ...found, source: { inlineVolumeSpec: csi.spec } };
}

/** The same for a Pod: on nodes where the driver does not have the plugin's volumes yet, nobody attaches them. */
function asCsi(volume: PersistentVolume, pod: Pod, sources: VolumeSources): PersistentVolume | undefined {
  const migrated = migratedPluginOf(volume.spec, sources.gates);
  return migrated === undefined || isOnNode(migrated, pod, sources) ? csiFormOf(volume, sources.gates) : undefined;
}

function isOnNode({ plugin }: MigratedPlugin, pod: Pod, { nodes }: VolumeSources): boolean {
  return isMigratedOnNode(plugin, nodes.get(pod.spec.nodeName ?? ""));
}

/** A CSI volume, or what a driver makes of the plugin's that it has taken over. */
export function csiFormOf(volume: PersistentVolume, gates: VolumeSources["gates"]): PersistentVolume | undefined {
  if (volume.spec.csi !== undefined) return volume;
  const migrated = migratedPluginOf(volume.spec, gates);
  return migrated === undefined ? undefined : translated(volume, migrated.plugin);
}

/** Some drivers have nothing to attach, and say so. */
function unlessDriverRefrains(volume: CsiVolume | undefined, { drivers }: VolumeSources): CsiVolume | undefined {
  if (volume === undefined || drivers.get(volume.driver)?.spec.attachRequired === false) return undefined;
  return volume;
}
