import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import type { Node, PersistentVolume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { VolumeAttachment } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import { attachmentName, parseVolumeId, type VolumeId } from "@coxswain/apimachinery/volumes/volume-id";
import type { DetachableNodes } from "./detachable-nodes.ts";
import type { Attached } from "./plan.ts";
import { csiFormOf } from "./resolve.ts";
import { idOfSpec } from "./volume.ts";

/**
 * Attached volumes, derived from the VolumeAttachment objects, so no state has to survive a restart. A VolumeAttachment names
 * a PersistentVolume; when that no longer exists, the volume is identified through the node's `status.volumesAttached`, and when
 * the node is gone too, through the nodes from which the controller may detach.
 */
export interface Attachments {
  /** @param nodes further nodes to check: their VolumeAttachment may name another PersistentVolume for the same volume */
  of(id: VolumeId, nodes: Iterable<string>): Attached[];
  /** Volumes that are attached to the node and not being detached. */
  onNode(node: string): VolumeId[];
  /** Volume of the attachment; undefined when it cannot be determined. */
  idOf(attachment: VolumeAttachment): VolumeId | undefined;
}

interface AttachmentSources {
  readonly attachments: SharedInformer<VolumeAttachment>;
  readonly volumes: SharedInformer<PersistentVolume>;
  readonly nodes: SharedInformer<Node>;
  readonly gates: { enabled(name: string): boolean };
  readonly detachable: DetachableNodes;
}

/** Adds the necessary indexes to the informers. */
export function newAttachments({ attachments, volumes, nodes, gates, detachable }: AttachmentSources): Attachments {
  volumes.addIndex("volume-id", volumeIdIndex(gates));
  nodes.addIndex("attached", attachedVolumeIds);
  attachments.addIndex("node", byNode);
  attachments.addIndex("volume", byVolume);
  attachments.addIndex("inline", byInlineVolume);

  const idOf = ({ metadata, spec }: VolumeAttachment): VolumeId | undefined => {
    const { persistentVolumeName, inlineVolumeSpec } = spec.source;
    const volume = persistentVolumeName === undefined ? undefined : volumes.lister.get(persistentVolumeName);
    const known = volume === undefined ? idOfSpec(inlineVolumeSpec) : idOfSpec(csiFormOf(volume, gates)?.spec);
    if (known !== undefined) return known;
    const name = metadata.name ?? "";
    const node = nodes.lister.get(spec.nodeName);
    return (node && idsByAttachment(node).get(name)) ?? detachable.idOf(name, spec.nodeName);
  };

  return {
    idOf,
    of(id, others) {
      const found = new Map<string, VolumeAttachment>();
      const add = (attachment: VolumeAttachment | undefined): void => {
        if (attachment !== undefined) found.set(attachment.metadata.name ?? "", attachment);
      };
      for (const volume of volumes.lister.byIndex("volume-id", id))
        for (const attachment of attachments.lister.byIndex("volume", volume.metadata.name ?? "")) add(attachment);
      for (const attachment of attachments.lister.byIndex("inline", id)) add(attachment);
      const listing = nodes.lister.byIndex("attached", id).map(({ metadata }) => metadata.name ?? "");
      for (const node of [...listing, ...others, ...detachable.of(id)]) add(attachments.lister.get(attachmentName(id, node)));
      return [...found.values()].map((attachment) => viewOf(attachment, nodes.lister.get(attachment.spec.nodeName), id));
    },
    onNode(node) {
      return attachments.lister.byIndex("node", node).flatMap((attachment) => {
        const isThere = attachment.status?.attached === true && !attachment.metadata.deletionTimestamp;
        return (isThere ? idOf(attachment) : undefined) ?? [];
      });
    },
  };
}

const attachmentsOf = new WeakMap<Node, ReadonlyMap<string, VolumeId>>();

/** The volumes in the node's status by the name of their VolumeAttachment, a hash of which each attachment would compute as many as there are. */
function idsByAttachment(node: Node): ReadonlyMap<string, VolumeId> {
  return attachmentsOf.getOrInsertComputed(node, () => {
    const ids = attachedVolumeIds(node).filter((id) => parseVolumeId(id));
    return new Map(ids.reverse().map((id) => [attachmentName(id, node.metadata.name ?? ""), id]));
  });
}

type Gates = AttachmentSources["gates"];
const volumeIdIndexes = new WeakMap<Gates, (volume: PersistentVolume) => string[]>();

/** The same function for the same gates: an informer rejects another one under the name of an index. */
function volumeIdIndex(gates: Gates): (volume: PersistentVolume) => string[] {
  return volumeIdIndexes.getOrInsertComputed(gates, () => (volume) => optional(idOfSpec(csiFormOf(volume, gates)?.spec)));
}

function byNode({ spec }: VolumeAttachment): string[] {
  return [spec.nodeName];
}

function byVolume({ spec: { source } }: VolumeAttachment): string[] {
  return optional(source.persistentVolumeName);
}

function byInlineVolume({ spec: { source } }: VolumeAttachment): string[] {
  return optional(idOfSpec(source.inlineVolumeSpec));
}

function viewOf({ metadata, spec, status }: VolumeAttachment, node: Node | undefined, id: VolumeId): Attached {
  return {
    node: spec.nodeName,
    name: metadata.name ?? "",
    attached: status?.attached === true,
    deleting: Boolean(metadata.deletionTimestamp),
    error: status?.attachError?.message,
    inUse: node?.status?.volumesInUse?.includes(id) ?? false,
  };
}

/** Volume ids in `status.volumesAttached` of the node. */
export function attachedVolumeIds({ status }: Node): VolumeId[] {
  return (status?.volumesAttached ?? []).map(({ name }) => name);
}

function optional(value: string | undefined): string[] {
  return value === undefined ? [] : [value];
}
