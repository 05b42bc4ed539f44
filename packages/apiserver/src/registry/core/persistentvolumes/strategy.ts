import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import { forbiddenField, invalidValue, notSupported, required } from "@coxswain/apimachinery/errors/field-error";
import { child } from "@coxswain/apimachinery/errors/field-path";
import { semanticEqual } from "@coxswain/apimachinery/meta/deep-equal";
import type { PersistentVolume } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { dns1123Subdomain, immutableField, quantityOf } from "../../field-checks.ts";
import type { Strategy } from "../../generic/strategy.ts";
import { keep, statusStrategyOf } from "../../strategies.ts";
import { accessModes } from "../persistentvolumeclaims/validation.ts";
import { validateNodeSelector } from "../pods/validation/affinity.ts";
import { checkQuantity } from "../pods/validation/resources.ts";
import { specDifference } from "../pods/validation/spec-difference.ts";
import { withoutBacksteps } from "../pods/validation/volumes.ts";

/** Source: pkg/registry/core/persistentvolume/strategy.go, pkg/apis/core/validation ValidatePersistentVolume */
export const persistentVolumeStrategy: Strategy<PersistentVolume> = {
  namespaceScoped: false,
  allowCreateOnUpdate: false,
  allowUnconditionalUpdate: true,
  resetFields: ["status"],
  prepareForCreate(next) {
    next.status = { phase: "Pending" };
  },
  prepareForUpdate: (next, current) => keep(next, current, "status"),
  validate: (next) => validatePersistentVolume(next),
  validateUpdate(next, current) {
    const errors = validatePersistentVolume(next);
    const [source, old] = [sourceOf(next), sourceOf(current)];
    if (!semanticEqual(source, old)) {
      errors.push(
        forbiddenField(
          "spec.persistentvolumesource",
          `spec.persistentvolumesource is immutable after creation\n${specDifference(source, old)}`,
        ),
      );
    }
    errors.push(...immutableField(next.spec?.volumeMode, current.spec?.volumeMode, "volumeMode"));
    if (current.spec?.nodeAffinity)
      errors.push(...immutableField(next.spec?.nodeAffinity, current.spec.nodeAffinity, "nodeAffinity"));
    return errors;
  },
};

export const persistentVolumeStatusStrategy: Strategy<PersistentVolume> = statusStrategyOf({ namespaced: false });

const otherFields = new Set([
  "capacity",
  "accessModes",
  "claimRef",
  "persistentVolumeReclaimPolicy",
  "storageClassName",
  "mountOptions",
  "volumeMode",
  "nodeAffinity",
]);

function sourceOf(volume: PersistentVolume): Record<string, unknown> {
  return Object.fromEntries(Object.entries(volume.spec ?? {}).filter(([key, value]) => !otherFields.has(key) && value != null));
}

function validatePersistentVolume(volume: PersistentVolume): FieldError[] {
  const errors: FieldError[] = [];
  const spec = volume.spec ?? {};
  const modes: readonly string[] = spec.accessModes ?? [];
  if (modes.length === 0) errors.push(required("spec.accessModes", ""));
  for (const mode of modes)
    if (!accessModes.includes(mode))
      errors.push(
        notSupported(
          "spec.accessModes",
          mode,
          accessModes.filter((m) => m !== "ReadWriteOncePod"),
        ),
      );
  const capacity = spec.capacity ?? {};
  if (Object.keys(capacity).length === 0) errors.push(required("spec.capacity", ""));
  else if (capacity.storage === undefined || Object.keys(capacity).length > 1)
    errors.push(notSupported("spec.capacity", capacity, ["storage"]));
  for (const [name, value] of Object.entries(capacity)) {
    const at = `spec.capacity[${name}]`;
    errors.push(...checkQuantity(name, value, at));
    if (quantityOf(value as string).sign <= 0)
      errors.push(invalidValue(at, quantityOf(value as string).toString(), "must be greater than zero"));
  }
  const policy: string = spec.persistentVolumeReclaimPolicy ?? "";
  if (policy !== "" && !["Delete", "Recycle", "Retain"].includes(policy)) {
    errors.push(notSupported("spec.persistentVolumeReclaimPolicy", policy, ["Delete", "Recycle", "Retain"]));
  }
  if (spec.nodeAffinity?.required) errors.push(...validateNodeSelector(spec.nodeAffinity.required, "spec.nodeAffinity.required"));
  else if (spec.nodeAffinity) errors.push(required("spec.nodeAffinity.required", "must specify required node constraints"));
  const sources = Object.keys(sourceOf(volume));
  for (const source of sources.slice(1))
    errors.push(forbiddenField(child("spec", source), "may not specify more than 1 volume type"));
  if (sources.length === 0) errors.push(required("spec", "must specify a volume type"));
  if (spec.hostPath) {
    if (!spec.hostPath.path) errors.push(required("spec.hostPath.path"));
    else errors.push(...withoutBacksteps(spec.hostPath.path, "spec.hostPath.path"));
    if (spec.hostPath.path === "/" && policy === "Recycle") {
      errors.push(forbiddenField("spec.persistentVolumeReclaimPolicy", "may not be 'recycle' for a hostPath mount of '/'"));
    }
  }
  if (spec.local) {
    if (!spec.local.path) errors.push(required("spec.local.path"));
    else errors.push(...withoutBacksteps(spec.local.path, "spec.local.path"));
    if (!spec.nodeAffinity) errors.push(required("metadata.annotations", "Local volume requires node affinity"));
  }
  if (spec.nfs) {
    if (!spec.nfs.server) errors.push(required("spec.nfs.server"));
    if (!spec.nfs.path) errors.push(required("spec.nfs.path"));
  }
  if (spec.csi) {
    if (!spec.csi.driver) errors.push(required("spec.csi.driver"));
    if (!spec.csi.volumeHandle) errors.push(required("spec.csi.volumeHandle"));
  }
  if (spec.storageClassName) errors.push(...dns1123Subdomain(spec.storageClassName, "spec.storageClassName"));
  const mode: string | undefined = spec.volumeMode;
  if (mode !== undefined && mode !== "Block" && mode !== "Filesystem")
    errors.push(notSupported("spec.volumeMode", mode, ["Block", "Filesystem"]));
  return errors;
}
