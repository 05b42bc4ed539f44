import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import { forbiddenField, invalidValue, notSupported, required } from "@coxswain/apimachinery/errors/field-error";
import { child } from "@coxswain/apimachinery/errors/field-path";
import { deepClone, semanticEqual } from "@coxswain/apimachinery/meta/deep-equal";
import type { PersistentVolumeClaim, PersistentVolumeClaimSpec } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { checkLabelSelector, immutableField, isDns1123Subdomain, quantityOf } from "../../field-checks.ts";
import { checkQuantity } from "../pods/validation/resources.ts";
import { specDifference } from "../pods/validation/spec-difference.ts";

export const accessModes = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const supportedModes = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce"];

/** Source: pkg/apis/core/validation ValidatePersistentVolumeClaim */
export function validatePersistentVolumeClaim(claim: PersistentVolumeClaim): FieldError[] {
  return validateClaimSpec(claim.spec ?? {}, "spec");
}

export function validateClaimSpec(spec: PersistentVolumeClaimSpec, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const modes: readonly string[] = spec.accessModes ?? [];
  if (modes.length === 0) errors.push(required(child(path, "accessModes"), "at least 1 access mode is required"));
  errors.push(...checkLabelSelector(spec.selector, child(path, "selector")));
  for (const mode of modes)
    if (!accessModes.includes(mode)) errors.push(notSupported(child(path, "accessModes"), mode, supportedModes));
  if (modes.includes("ReadWriteOncePod") && modes.length > 1) {
    errors.push(forbiddenField(child(path, "accessModes"), "may not use ReadWriteOncePod with other access modes"));
  }
  const storage = spec.resources?.requests?.storage;
  if (storage === undefined) errors.push(required(`${child(path, "resources")}[storage]`, ""));
  else {
    const at = `${child(path, "resources")}[storage]`;
    errors.push(...checkQuantity("storage", storage, at));
    if (quantityOf(storage).sign <= 0) errors.push(invalidValue(at, quantityOf(storage).toString(), "must be greater than zero"));
  }
  if (spec.storageClassName) {
    for (const message of isDns1123Subdomain(spec.storageClassName))
      errors.push(invalidValue(child(path, "storageClassName"), spec.storageClassName, message));
  }
  const volumeMode: string | undefined = spec.volumeMode;
  if (volumeMode !== undefined && volumeMode !== "Block" && volumeMode !== "Filesystem") {
    errors.push(notSupported(child(path, "volumeMode"), volumeMode, ["Block", "Filesystem"]));
  }
  if (spec.dataSource) {
    if (!spec.dataSource.name) errors.push(required(child(path, "dataSource", "name"), ""));
    if (!spec.dataSource.kind) errors.push(required(child(path, "dataSource", "kind"), ""));
    if (!spec.dataSource.apiGroup && spec.dataSource.kind !== "PersistentVolumeClaim") {
      errors.push(
        invalidValue(
          child(path, "dataSource"),
          spec.dataSource.kind,
          "must be 'PersistentVolumeClaim' when referencing the default apiGroup",
        ),
      );
    }
  }
  return errors;
}

/** After creation only the requested size of a bound claim may grow, and the volume be named once. */
export function validatePersistentVolumeClaimUpdate(next: PersistentVolumeClaim, current: PersistentVolumeClaim): FieldError[] {
  const errors = validatePersistentVolumeClaim(next);
  const munged = deepClone(next.spec ?? {});
  const old = deepClone(current.spec ?? {});
  // The binder fills the volume of a claim once.
  if (!old.volumeName) {
    if (munged.volumeName === undefined) delete old.volumeName;
    else old.volumeName = munged.volumeName;
  }
  if (current.status?.phase === "Bound" && munged.resources?.requests && old.resources?.requests?.storage !== undefined) {
    munged.resources.requests.storage = old.resources.requests.storage;
  }
  if (old.dataSource !== undefined && munged.dataSourceRef !== undefined && old.dataSourceRef === undefined)
    delete munged.dataSourceRef;
  if (!semanticEqual(munged, old)) {
    errors.push(
      forbiddenField(
        "spec",
        `spec is immutable after creation except resources.requests for bound claims\n${specDifference(munged, old)}`,
      ),
    );
  }
  const newSize = next.spec?.resources?.requests?.storage;
  const oldSize = current.spec?.resources?.requests?.storage;
  if (newSize !== undefined && oldSize !== undefined && quantityOf(newSize).cmp(quantityOf(oldSize)) < 0) {
    errors.push(forbiddenField("spec.resources.requests.storage", "field can not be less than previous value"));
  }
  errors.push(...immutableField(next.spec?.volumeMode, current.spec?.volumeMode, "spec.volumeMode"));
  return errors;
}

export function validatePersistentVolumeClaimStatusUpdate(next: PersistentVolumeClaim): FieldError[] {
  const errors: FieldError[] = [];
  if (!next.spec?.accessModes?.length) errors.push(required("spec.accessModes", ""));
  for (const [name, value] of Object.entries(next.status?.capacity ?? {}))
    errors.push(...checkQuantity(name, value, `status.capacity[${name}]`));
  return errors;
}
