import type { VolumeAttachment } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import { defaultSource } from "../../core/pods/defaults.ts";

/** Source: pkg/apis/storage/v1/zz_generated.defaults.go SetObjectDefaults_VolumeAttachment */
export function defaultVolumeAttachment(object: VolumeAttachment): void {
  const inline = object.spec?.source?.inlineVolumeSpec;
  if (inline) defaultSource(inline);
}
