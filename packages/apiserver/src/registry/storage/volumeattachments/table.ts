import type { VolumeAttachment } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import { age, tableOf } from "../../cells.ts";

export const volumeAttachmentTable = tableOf<VolumeAttachment>("volumeattachments", (attachment, ages) => [
  attachment.metadata.name ?? "",
  attachment.spec?.attacher ?? "",
  attachment.spec?.source?.persistentVolumeName ?? "",
  attachment.spec?.nodeName ?? "",
  attachment.status?.attached ?? false,
  age(attachment, ages),
]);
