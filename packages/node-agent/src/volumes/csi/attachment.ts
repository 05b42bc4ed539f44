import type { Client } from "@coxswain/apimachinery/client/client";
import { isAlreadyExists, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { volumeAttachments } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { VolumeAttachment } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import { attachmentName } from "@coxswain/apimachinery/volumes/volume-id";
import { attachedHere } from "../attached-here.ts";
import { VolumeWaits } from "../volume.ts";
import { type CsiSource, idOf } from "./csi-source.ts";

/** Attachment of CSI volumes to this node. */
export interface Attachments {
  /**
   * The publish context of the attached volume, as reported by the driver's controller plugin.
   * @throws VolumeWaits while the volume is not attached; Error when attaching failed
   */
  contextOf(source: CsiSource): Promise<Readonly<Record<string, string>>>;
  /** Called when no Pod on this node uses the volume any more. */
  release(source: Pick<CsiSource, "driver" | "handle">): Promise<void>;
}

interface AttachmentsOptions {
  client: Client;
  nodeName: string;
  /** The Node object as stored in the API server. */
  node: () => Node | undefined;
  /** True when the attach/detach controller attaches; false when the agent does (`--enable-controller-attach-detach=false`). */
  byController: boolean;
}

/**
 * Reads attachments from the node's status, or creates and deletes VolumeAttachments itself without the attach/detach
 * controller.
 * Source: pkg/volume/csi/csi_attacher.go
 */
export function newAttachments({ client, nodeName, node, byController }: AttachmentsOptions): Attachments {
  async function attach(source: CsiSource, name: string): Promise<void> {
    const attachment: VolumeAttachment = {
      apiVersion: "storage.k8s.io/v1",
      kind: "VolumeAttachment",
      metadata: { name },
      spec: { attacher: source.driver, nodeName, source: source.attach },
    };
    await client.create(volumeAttachments, attachment).catch((err) => {
      if (!isAlreadyExists(err)) throw err;
    });
  }

  return {
    async contextOf(source) {
      const name = attachmentName(idOf(source), nodeName);
      if (byController) attachedHere(node(), idOf(source));
      else await attach(source, name);
      const { metadata, status } = await client.get<VolumeAttachment>(volumeAttachments, { name }).catch((err: Error) => {
        throw new Error(`volume ${source.handle} has GET error for volume attachment ${name}: ${err.message}`);
      });
      if (metadata.deletionTimestamp != null) throw new Error("volume attachment is being deleted");
      if (status?.attached === true) return status.attachmentMetadata ?? {};
      if (status?.attachError?.message) throw new Error(status.attachError.message);
      throw new VolumeWaits(`attachment timeout for volume ${source.handle}`);
    },
    async release(source) {
      if (byController) return;
      await client.delete(volumeAttachments, { name: attachmentName(idOf(source), nodeName) }).catch((err) => {
        if (!isNotFound(err)) throw err;
      });
    },
  };
}
