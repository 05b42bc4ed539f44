import { goStruct } from "@coxswain/apimachinery/objects/schema/go/go-print";
import type { VolumeAttachment } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import { immutableField } from "../../field-checks.ts";
import type { Strategy } from "../../generic/strategy.ts";
import { statusStrategyOf } from "../../strategies.ts";
import { validateNewVolumeAttachment, validateVolumeAttachment } from "./validation.ts";

/** Source: pkg/registry/storage/volumeattachment/strategy.go */
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
  validate: (next, ctx) => [
    ...validateVolumeAttachment(next, ctx.featureEnabled("ReadWriteOncePod")),
    ...validateNewVolumeAttachment(next),
  ],
  validateUpdate: (next, current, ctx) => [
    ...validateVolumeAttachment(next, ctx.featureEnabled("ReadWriteOncePod")),
    ...immutableField(next.spec, current.spec, "spec", () => goStruct("storage/v1.VolumeAttachmentSpec", next.spec ?? {})),
  ],
};

export const volumeAttachmentStatusStrategy: Strategy<VolumeAttachment> = statusStrategyOf({
  namespaced: false,
  keepMetadata: true,
  validateUpdate: (next, _current, ctx) => validateVolumeAttachment(next, ctx.featureEnabled("ReadWriteOncePod")),
});
