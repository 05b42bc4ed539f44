import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { VolumeAttachment } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import { defaultSource } from "../../core/pods/defaults.ts";

/** Source: pkg/apis/storage/v1/zz_generated.defaults.go SetObjectDefaults_VolumeAttachment */
export function defaultVolumeAttachment(object: KubeObject): void {
  const inline = (object as VolumeAttachment).spec?.source?.inlineVolumeSpec;
  if (inline) defaultSource(inline);
}
