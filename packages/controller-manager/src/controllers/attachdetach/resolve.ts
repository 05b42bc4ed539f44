import { flexVolumeOf } from "@coxswain/apimachinery/flex-volumes/volume";
import type { Lister } from "@coxswain/apimachinery/informers/lister";
import { toKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { PersistentVolume, PersistentVolumeClaim, Pod, Volume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { CSIDriver, CSINode } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import { claimNameOf, notMadeFor } from "@coxswain/apimachinery/volumes/claims-of-pod";
import { translated, translatedInline } from "@coxswain/apimachinery/volumes/csi-translation";
import { isMigratedOnNode, type MigratedPlugin, migratedPluginOf } from "@coxswain/apimachinery/volumes/migration";
import type { FlexAttacher } from "./flex-attacher.ts";
import type { Resolved } from "./volume.ts";
import { type AttachableFlexVolume, type AttachableVolume, attachable, attachableFlex, type CsiVolume } from "./volume.ts";

/** Listers used to resolve a Pod's volumes. */
export interface VolumeSources {
  readonly claims: Lister<PersistentVolumeClaim>;
  readonly volumes: Lister<PersistentVolume>;
  readonly drivers: Lister<CSIDriver>;
  readonly nodes: Lister<CSINode>;
  readonly gates: { enabled(name: string): boolean };
  readonly flex: Pick<FlexAttacher, "attaches">;
}

/**
 * Resolves a volume of a Pod to what has to be attached to the Pod's node.
 * Source: pkg/controller/volume/attachdetach/util CreateVolumeSpec
 */
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
  return unlessAttachNotRequired(csi === undefined ? undefined : attachable(csi), sources) ?? "not attached";
}

/** @param bound the PersistentVolume of the Pod's claim; undefined for an inline volume */
function flexVolume(volume: Volume, { flex }: VolumeSources, bound?: PersistentVolume): AttachableFlexVolume | undefined {
  const source = bound === undefined ? volume.flexVolume : bound.spec.flexVolume;
  if (source === undefined || !flex.attaches(source.driver)) return undefined;
  const { name = volume.name } = bound?.metadata ?? {};
  const { readOnly = false } = volume.flexVolume ?? volume.persistentVolumeClaim ?? {};
  return attachableFlex(flexVolumeOf(source, { name, readOnly }), bound);
}

/** An inline volume of a flex driver, or of an in-tree plugin that is migrated to CSI. */
function inlineVolume(volume: Volume, pod: Pod, sources: VolumeSources): AttachableVolume | undefined {
  if (volume.flexVolume !== undefined) return flexVolume(volume, sources);
  const migrated = migratedPluginOf(volume, sources.gates);
  if (migrated === undefined || !isOnNode(migrated, pod, sources)) return undefined;
  const csi = translatedInline(volume, migrated.plugin, pod.metadata.namespace ?? "");
  const found = csi && unlessAttachNotRequired(attachable(csi), sources);
  return found && { ...found, source: { inlineVolumeSpec: csi.spec } };
}

/** CSI form of the volume for a Pod; undefined on nodes where the plugin is not migrated yet: such volumes are not attached. */
function asCsi(volume: PersistentVolume, pod: Pod, sources: VolumeSources): PersistentVolume | undefined {
  const migrated = migratedPluginOf(volume.spec, sources.gates);
  return migrated === undefined || isOnNode(migrated, pod, sources) ? csiFormOf(volume, sources.gates) : undefined;
}

function isOnNode({ plugin }: MigratedPlugin, pod: Pod, { nodes }: VolumeSources): boolean {
  return isMigratedOnNode(plugin, nodes.get(pod.spec.nodeName ?? ""));
}

/** Returns a CSI volume itself, or the CSI translation of a migrated in-tree volume. */
export function csiFormOf(volume: PersistentVolume, gates: VolumeSources["gates"]): PersistentVolume | undefined {
  if (volume.spec.csi !== undefined) return volume;
  const migrated = migratedPluginOf(volume.spec, gates);
  return migrated === undefined ? undefined : translated(volume, migrated.plugin);
}

/** Filters out volumes whose CSIDriver sets `attachRequired: false`. */
function unlessAttachNotRequired(volume: CsiVolume | undefined, { drivers }: VolumeSources): CsiVolume | undefined {
  if (volume === undefined || drivers.get(volume.driver)?.spec.attachRequired === false) return undefined;
  return volume;
}
