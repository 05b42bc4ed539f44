import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import { invalidValue, required } from "@coxswain/apimachinery/errors/field-error";
import type { VolumeAttachment } from "@coxswain/apimachinery/schema/kinds/storage/v1";
import { checkDriverName } from "../../core/pods/validation/volume-sources.ts";
import { dns1123Subdomain, immutableField } from "../../field-checks.ts";
import type { Strategy } from "../../generic/strategy.ts";
import { statusStrategyOf } from "../../strategies.ts";

/** Source: pkg/registry/storage/volumeattachment/strategy.go, pkg/apis/storage/validation/validation.go */
export const volumeAttachmentStrategy: Strategy<VolumeAttachment> = {
  namespaceScoped: false,
  allowCreateOnUpdate: false,
  allowUnconditionalUpdate: false,
  resetFields: ["status"],
  prepareForCreate(next) {
    next.status = { attached: false };
  },
  prepareForUpdate(next, current) {
    if (current.status === undefined) delete next.status;
    else next.status = current.status;
  },
  validate: (next) => validateAttachment(next),
  validateUpdate: (next, current) => [...validateAttachment(next), ...immutableField(next.spec, current.spec, "spec")],
};

export const volumeAttachmentStatusStrategy: Strategy<VolumeAttachment> = statusStrategyOf({ namespaced: false });

function validateAttachment(attachment: VolumeAttachment): FieldError[] {
  const errors: FieldError[] = [];
  const spec = attachment.spec;
  errors.push(...checkDriverName(spec?.attacher ?? "", "spec.attacher"));
  const { inlineVolumeSpec, persistentVolumeName } = spec?.source ?? {};
  if (inlineVolumeSpec === undefined && !persistentVolumeName)
    errors.push(required("spec.source", "must specify exactly one of inlineVolumeSpec and persistentVolumeName"));
  else if (inlineVolumeSpec !== undefined && persistentVolumeName !== undefined) {
    errors.push(
      invalidValue("spec.source", spec?.source, "must specify exactly one of inlineVolumeSpec and persistentVolumeName"),
    );
  } else if (persistentVolumeName !== undefined) {
    errors.push(...dns1123Subdomain(persistentVolumeName, "spec.source.persistentVolumeName"));
  }
  errors.push(...dns1123Subdomain(spec?.nodeName ?? "", "spec.nodeName"));
  return errors;
}
