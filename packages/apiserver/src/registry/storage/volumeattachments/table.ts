import type { VolumeAttachment } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import { age, ageColumn, flag, nameColumn, tableOf, text } from "../../cells.ts";

export const volumeAttachmentTable = tableOf<VolumeAttachment>(
  [
    nameColumn,
    {
      name: "Attacher",
      type: "string",
      format: "name",
      description:
        "Attacher indicates the name of the volume driver that MUST handle this request. This is the name returned by GetPluginName().",
    },
    text("PV", "Name of the persistent volume to attach."),
    text("Node", "The node that the volume should be attached to."),
    flag(
      "Attached",
      "Indicates the volume is successfully attached. This field must only be set by the entity completing the attach operation, i.e. the external-attacher.",
    ),
    ageColumn,
  ],
  (attachment, ages) => [
    attachment.metadata.name ?? "",
    attachment.spec?.attacher ?? "",
    attachment.spec?.source?.persistentVolumeName ?? "",
    attachment.spec?.nodeName ?? "",
    attachment.status?.attached ?? false,
    age(attachment, ages),
  ],
);
