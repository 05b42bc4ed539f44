import {
  child,
  type FieldError,
  forbiddenField,
  invalidValue,
  required,
  tooLong,
} from "@coxswain/apimachinery/objects/errors/field-error";
import type {
  VolumeAttachment,
  VolumeAttachmentSource,
  VolumeError,
} from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import { validateInlineVolume } from "../../core/persistentvolumes/validation.ts";
import { checkDriverName } from "../../core/pods/validation/volume-sources.ts";
import { dns1123Subdomain } from "../../field-checks.ts";
import { emptyStruct, need } from "../../rules.ts";

const mostMetadataBytes = 256 * 1024;
const longestMessage = 1024;

/** Source: pkg/apis/storage/validation ValidateVolumeAttachment */
export function validateVolumeAttachment(attachment: VolumeAttachment, oncePod: boolean): FieldError[] {
  const { attacher = "", source = {}, nodeName = "" } = attachment.spec ?? emptyStruct();
  const { attachmentMetadata, attachError, detachError } = attachment.status ?? {};
  return [
    ...need(attacher, "spec.attacher"),
    ...validateSource(source, "spec.source", oncePod),
    ...dns1123Subdomain(nodeName, "spec.nodeName"),
    ...validateMetadata(attachmentMetadata, "status.attachmentMetadata"),
    ...validateError(attachError, "status.attachError"),
    ...validateError(detachError, "status.detachError"),
  ];
}

/** Additional checks on create in v1. Source: ValidateVolumeAttachmentV1 */
export function validateNewVolumeAttachment({ spec }: VolumeAttachment): FieldError[] {
  const named = spec?.source?.persistentVolumeName;
  return [
    ...checkDriverName(spec?.attacher ?? "", "spec.attacher"),
    ...(named === undefined ? [] : dns1123Subdomain(named, "spec.source.persistentVolumeName")),
  ];
}

function validateSource(source: VolumeAttachmentSource, path: string, oncePod: boolean): FieldError[] {
  const { inlineVolumeSpec, persistentVolumeName } = source;
  const text = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
  if (inlineVolumeSpec && persistentVolumeName !== undefined) return [forbiddenField(path, text)];
  if (inlineVolumeSpec) return atOnce(validateInlineVolume(inlineVolumeSpec, child(path, "inlineVolumeSpec"), oncePod));
  if (persistentVolumeName === undefined) return [required(path, text)];
  const at = child(path, "persistentVolumeName");
  return persistentVolumeName === "" ? [required(at, "must specify non empty persistentVolumeName")] : [];
}

function validateMetadata(metadata: Readonly<Record<string, string>> | undefined, path: string): FieldError[] {
  const entries = Object.entries(metadata ?? {});
  const errors = entries.filter(([key]) => key === "").map(([key]) => invalidValue(path, key, "field can not be empty."));
  const size = entries.reduce((sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value), 0);
  return size > mostMetadataBytes ? [...errors, tooLong(path, "", mostMetadataBytes)] : errors;
}

function validateError(error: VolumeError | undefined, path: string): FieldError[] {
  const message = error?.message ?? "";
  // Upstream's error text names another limit than the enforced one.
  return Buffer.byteLength(message) > longestMessage ? [tooLong(child(path, "message"), message, mostMetadataBytes)] : [];
}
