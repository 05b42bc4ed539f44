import {
  addErrors,
  child,
  type FieldError,
  forbiddenField,
  invalidValue,
  mapKey,
  notSupported,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { GoText } from "@coxswain/apimachinery/objects/errors/go-syntax";
import { deepEqualInSteps, semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { differencesText } from "@coxswain/apimachinery/objects/meta/differences";
import type {
  PersistentVolumeClaim,
  PersistentVolumeClaimSpec,
  TypedLocalObjectReference,
} from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { checkingLabelSelector, dns1123Subdomain, fieldImmutableText, immutableField, quantityOf } from "../../field-checks.ts";
import { eachKeyInSteps, need, optionalOneOf } from "../../rules.ts";
import { checkNotNegative, checkPositive } from "../pods/validation/resources.ts";

const sharedModes = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce"];
const oncePodMode = "ReadWriteOncePod";

/** @param oncePod ReadWriteOncePod is allowed: the gate is on, or the stored object has it */
export function checkAccessModes(modes: readonly string[] | undefined, path: string, oncePod: boolean): FieldError[] {
  const known = oncePod ? [...sharedModes, oncePodMode] : sharedModes;
  const errors: FieldError[] = [];
  for (const mode of modes ?? []) if (!known.includes(mode)) errors.push(notSupported(path, mode, known));
  if (modes?.includes(oncePodMode) && modes.some((mode) => sharedModes.includes(mode)))
    errors.push(forbiddenField(path, "may not use ReadWriteOncePod with other access modes"));
  return errors;
}

/** Source: pkg/apis/core/validation ValidatePersistentVolumeClaim */
export function validatePersistentVolumeClaim(claim: PersistentVolumeClaim, oncePod: boolean): Steps<FieldError[]> {
  return validateClaimSpec(claim.spec ?? {}, "spec", oncePod);
}

/**
 * Also used for the claim templates of ephemeral volumes.
 * Source: pkg/apis/core/validation ValidatePersistentVolumeClaimSpec
 * @param oncePod as in `checkAccessModes`
 */
export function* validateClaimSpec(spec: PersistentVolumeClaimSpec, path: string, oncePod: boolean): Steps<FieldError[]> {
  const modes = child(path, "accessModes");
  const [size, sizePath] = [spec.resources?.requests?.storage, mapKey(child(path, "resources"), "storage")];
  const { storageClassName, dataSource, dataSourceRef } = spec;
  const errors = [
    ...need(spec.accessModes, modes, "at least 1 access mode is required"),
    ...(yield* checkingLabelSelector(spec.selector, child(path, "selector"))),
    ...checkAccessModes(spec.accessModes, modes, oncePod),
    ...(size === undefined ? [required(sizePath)] : checkPositive(size, sizePath)),
    ...(storageClassName ? dns1123Subdomain(storageClassName, child(path, "storageClassName")) : []),
    ...optionalOneOf(spec.volumeMode, ["Block", "Filesystem"], child(path, "volumeMode")),
    ...validateDataSource(dataSource, child(path, "dataSource")),
    ...validateDataSource(dataSourceRef, child(path, "dataSourceRef")),
  ];
  if (dataSource && dataSourceRef && !semanticEqual(dataSource, dataSourceRef)) {
    const value = new GoText('field.Path{name:"dataSource", index:"", parent:(*field.Path)(0xc000000000)}');
    errors.push(invalidValue(path, value, "must match dataSourceRef"));
  }
  return errors;
}

function validateDataSource(source: TypedLocalObjectReference | undefined, path: string): FieldError[] {
  if (!source) return [];
  const errors = [...need(source.name, child(path, "name")), ...need(source.kind, child(path, "kind"))];
  if (!source.apiGroup && source.kind !== "PersistentVolumeClaim") errors.push(invalidValue(path, source.kind ?? "", ""));
  return errors;
}

const classAnnotation = "volume.beta.kubernetes.io/storage-class";

/** With this gate the requested size may be reduced after a failed expansion, but not below the current capacity. */
const recoveryGate = "RecoverVolumeExpansionFailure";

/**
 * The spec is immutable, except that a bound claim may request more storage and volumeName may be set once.
 * Source: pkg/apis/core/validation ValidatePersistentVolumeClaimUpdate
 */
export function* validatePersistentVolumeClaimUpdate(
  next: PersistentVolumeClaim,
  current: PersistentVolumeClaim,
  featureEnabled: (gate: string) => boolean,
): Steps<FieldError[]> {
  const oncePod = featureEnabled(oncePodMode) || (current.spec?.accessModes ?? []).includes(oncePodMode);
  const errors = yield* validatePersistentVolumeClaim(next, oncePod);
  yield;
  const munged = { ...next.spec };
  const old = { ...current.spec };
  // The volume binder sets volumeName once.
  if (!old.volumeName) {
    if (munged.volumeName === undefined) delete old.volumeName;
    else old.volumeName = munged.volumeName;
  }
  const [nextClass, oldClass] = [next, current].map((claim) => claim.metadata.annotations?.[classAnnotation]);
  const moves = oldClass !== undefined && old.storageClassName === undefined && munged.storageClassName === oldClass;
  if (moves && (nextClass === undefined || nextClass === oldClass)) delete munged.storageClassName;
  else if ((nextClass ?? "") !== (oldClass ?? ""))
    errors.push(invalidValue(`metadata.annotations.${classAnnotation}`, nextClass ?? "", fieldImmutableText));
  const growing = featureEnabled("ExpandPersistentVolumes");
  const [size, oldSize] = [next.spec?.resources?.requests?.storage, current.spec?.resources?.requests?.storage];
  if (growing && next.status?.phase === "Bound" && munged.resources?.requests && oldSize !== undefined)
    munged.resources = { ...munged.resources, requests: { ...munged.resources.requests, storage: oldSize } };
  yield;
  if (!(yield* deepEqualInSteps(munged, old)) && !semanticEqual(munged, old)) {
    yield;
    const rule = growing
      ? "spec is immutable after creation except resources.requests for bound claims"
      : "field is immutable after creation";
    errors.push(forbiddenField("spec", `${rule}\n${differencesText(old, munged)}`));
  }
  const floor = featureEnabled(recoveryGate)
    ? { crossed: quantityOf(size).cmp(quantityOf(current.status?.capacity?.storage)) <= 0, name: "status.capacity" }
    : { crossed: true, name: "previous value" };
  if (growing && quantityOf(size).cmp(quantityOf(oldSize)) < 0 && floor.crossed)
    errors.push(forbiddenField("spec.resources.requests.storage", `field can not be less than ${floor.name}`));
  return [...errors, ...immutableField(next.spec?.volumeMode, current.spec?.volumeMode, "volumeMode")];
}

/**
 * Amounts are not negative. The fields of the gate RecoverVolumeExpansionFailure are validated only with the gate.
 * Source: pkg/apis/core/validation ValidatePersistentVolumeClaimStatusUpdate
 */
export function* validatePersistentVolumeClaimStatusUpdate(
  next: PersistentVolumeClaim,
  featureEnabled: (gate: string) => boolean,
): Steps<FieldError[]> {
  const errors = need(next.spec?.accessModes, "Spec.accessModes");
  const { capacity = {}, resizeStatus, allocatedResources = {} } = next.status ?? {};
  addErrors(errors, yield* eachKeyInSteps(capacity, "status.capacity", (_name, value, at) => checkNotNegative(value, at)));
  if (!featureEnabled(recoveryGate)) return errors;
  if (resizeStatus !== undefined && !resizeStatuses.includes(resizeStatus))
    errors.push(notSupported("status.resizeStatus", resizeStatus, resizeStatuses));
  const allocated = "status.allocatedResources";
  const checkAllocated = (name: string, value: string, at: string): FieldError[] =>
    name === "storage" ? checkNotNegative(value, at) : [notSupported(allocated, name, ["storage"])];
  addErrors(errors, yield* eachKeyInSteps(allocatedResources, allocated, checkAllocated));
  return errors;
}

/** The empty status means that no resize is in progress. */
const resizeStatuses = [
  "",
  "ControllerExpansionFailed",
  "ControllerExpansionInProgress",
  "NodeExpansionFailed",
  "NodeExpansionInProgress",
  "NodeExpansionPending",
];
