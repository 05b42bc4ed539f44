import { atOnce, chunksOf, Pace, type Steps } from "../../process/event-loop/steps.ts";
import {
  addErrors,
  child,
  type FieldError,
  forbiddenField,
  index,
  invalidValue,
  required,
  tooLong,
} from "../errors/field-error.ts";
import { GoText, goSyntax } from "../errors/go-syntax.ts";
import { semanticEqual } from "../meta/deep-equal.ts";
import { foregroundFinalizer, orphanFinalizer } from "../meta/finalizers.ts";
import { goQuote } from "../meta/go-quote.ts";
import { parseGroupVersion } from "../meta/group-version.ts";
import { parseTime } from "../meta/time.ts";
import type { ManagedFieldsEntry, ObjectMeta, OwnerReference } from "../meta/types.ts";
import { dns1035LabelProblems, dns1123LabelProblems } from "./dns.ts";
import { labelValueProblems, qualifiedNameProblems } from "./qualified-name.ts";

/**
 * Validation of metadata for all kinds. Returns all errors, with upstream's texts.
 * Source: k8s.io/apimachinery pkg/api/validation/objectmeta.go, pkg/apis/meta/v1/validation
 */
type ValidateName = (name: string) => string[];

export const fieldImmutableText = "field is immutable";
export const isNegativeText = "must be greater than or equal to 0";
const totalAnnotationSizeLimitBytes = 256 * 1024;
const longestManager = 128;
const longestSubresource = 256;
/** Keys and values that are validated between two yields. */
const validatedPerStep = 2048;

/**
 * Validates the metadata of a new object, after the name was generated.
 * @param path field path, e.g. `metadata`
 */
export function validateObjectMeta(
  meta: ObjectMeta,
  requiresNamespace: boolean,
  validateName: ValidateName,
  path: string,
): FieldError[] {
  return atOnce(validatingObjectMeta(meta, requiresNamespace, validateName, path));
}

/** As `validateObjectMeta`, for metadata of many values. */
export function* validatingObjectMeta(
  meta: ObjectMeta,
  requiresNamespace: boolean,
  validateName: ValidateName,
  path: string,
): Steps<FieldError[]> {
  const errors: FieldError[] = [];
  if (meta.generateName) {
    const base = maskTrailingDash(meta.generateName);
    for (const message of validateName(base)) errors.push(invalidValue(child(path, "generateName"), meta.generateName, message));
  }
  if (!meta.name) errors.push(required(child(path, "name"), "name or generateName is required"));
  else for (const message of validateName(meta.name)) errors.push(invalidValue(child(path, "name"), meta.name, message));
  errors.push(...validateNamespaceField(meta.namespace, requiresNamespace, child(path, "namespace")));
  if (meta.clusterName) {
    for (const message of dns1035LabelProblems(meta.clusterName))
      errors.push(invalidValue(child(path, "clusterName"), meta.clusterName, message));
  }
  if ((meta.generation ?? 0) < 0) errors.push(invalidValue(child(path, "generation"), meta.generation, isNegativeText));
  addErrors(errors, yield* validatingLabels(meta.labels, child(path, "labels")));
  addErrors(errors, yield* validatingAnnotations(meta.annotations, child(path, "annotations")));
  addErrors(errors, yield* validatingOwnerReferences(meta.ownerReferences, child(path, "ownerReferences")));
  addErrors(errors, yield* validatingFinalizers(meta.finalizers, child(path, "finalizers")));
  addErrors(errors, yield* validatingManagedFields(meta.managedFields, child(path, "managedFields")));
  return errors;
}

/** Validates the metadata of an update of `current`. */
export function* validatingObjectMetaUpdate(next: ObjectMeta, current: ObjectMeta, path: string): Steps<FieldError[]> {
  const errors: FieldError[] = [];
  if (current.deletionTimestamp) {
    const extra = [...new Set(next.finalizers ?? []).difference(new Set(current.finalizers ?? []))].sort();
    if (extra.length > 0) {
      const text = `no new finalizers can be added if the object is being deleted, found new finalizers ${goSyntax(extra)}`;
      errors.push(forbiddenField(child(path, "finalizers"), text));
    }
  }
  if (!next.resourceVersion) errors.push(invalidValue(child(path, "resourceVersion"), "", "must be specified for an update"));
  if ((next.generation ?? 0) < (current.generation ?? 0)) {
    errors.push(invalidValue(child(path, "generation"), next.generation ?? 0, "must not be decremented"));
  }
  errors.push(...immutable(next.name ?? "", current.name ?? "", child(path, "name")));
  errors.push(...immutable(next.namespace ?? "", current.namespace ?? "", child(path, "namespace")));
  errors.push(...immutable(next.uid ?? "", current.uid ?? "", child(path, "uid")));
  errors.push(...immutableTime(next.creationTimestamp, current.creationTimestamp, child(path, "creationTimestamp"), zeroTime));
  errors.push(...immutableTime(next.deletionTimestamp, current.deletionTimestamp, child(path, "deletionTimestamp"), undefined));
  const grace = child(path, "deletionGracePeriodSeconds");
  errors.push(...immutable(next.deletionGracePeriodSeconds ?? null, current.deletionGracePeriodSeconds ?? null, grace));
  errors.push(...immutable(next.clusterName ?? "", current.clusterName ?? "", child(path, "clusterName")));
  addErrors(errors, yield* validatingLabels(next.labels, child(path, "labels")));
  addErrors(errors, yield* validatingAnnotations(next.annotations, child(path, "annotations")));
  addErrors(errors, yield* validatingOwnerReferences(next.ownerReferences, child(path, "ownerReferences")));
  addErrors(errors, yield* validatingManagedFields(next.managedFields, child(path, "managedFields")));
  return errors;
}

/** An error unless the values are semantically equal (empty and absent are the same). */
function immutable(next: unknown, current: unknown, path: string): FieldError[] {
  return semanticEqual(next, current) ? [] : [invalidValue(path, next, fieldImmutableText)];
}

const zeroTime = new GoText("0001-01-01 00:00:00 +0000 UTC");

function immutableTime(
  next: string | null | undefined,
  current: string | null | undefined,
  path: string,
  absent: unknown,
): FieldError[] {
  const same = (next ?? "") === (current ?? "") || (next && current && parseTime(next) === parseTime(current));
  if (same) return [];
  const value = next ? new GoText(`${next.slice(0, 19).replace("T", " ")} +0000 UTC`) : absent;
  return [invalidValue(path, value, fieldImmutableText)];
}

function validateNamespaceField(namespace: string | undefined, namespaced: boolean, path: string): FieldError[] {
  if (!namespaced) return namespace ? [forbiddenField(path, "not allowed on this type")] : [];
  if (!namespace) return [required(path)];
  return dns1123LabelProblems(namespace).map((message) => invalidValue(path, namespace, message));
}

/** Validates label keys and values. */
export function validateLabels(labels: Readonly<Record<string, string>> | undefined | null, path: string): FieldError[] {
  return atOnce(validatingLabels(labels, path));
}

/** As `validateLabels`, in steps. */
export function* validatingLabels(
  labels: Readonly<Record<string, string>> | undefined | null,
  path: string,
): Steps<FieldError[]> {
  const errors: FieldError[] = [];
  const all = labels ?? {};
  // Object.entries of many takes several times as long as their keys.
  for (const some of chunksOf(Object.keys(all), validatedPerStep)) {
    if (some.length === validatedPerStep) yield;
    for (const key of some) {
      const value = all[key]!;
      for (const message of qualifiedNameProblems(key)) errors.push(invalidValue(path, key, message));
      for (const message of labelValueProblems(value)) errors.push(invalidValue(path, value, message));
    }
  }
  return errors;
}

/** Annotation keys are validated in lower case, as upper case is allowed in them. */
export function validateAnnotations(
  annotations: Readonly<Record<string, string>> | undefined | null,
  path: string,
): FieldError[] {
  return atOnce(validatingAnnotations(annotations, path));
}

/** As `validateAnnotations`, in steps. */
export function* validatingAnnotations(
  annotations: Readonly<Record<string, string>> | undefined | null,
  path: string,
): Steps<FieldError[]> {
  const errors: FieldError[] = [];
  let totalBytes = 0;
  const all = annotations ?? {};
  for (const some of chunksOf(Object.keys(all), validatedPerStep)) {
    if (some.length === validatedPerStep) yield;
    for (const key of some) {
      const value = all[key]!;
      for (const message of qualifiedNameProblems(key.toLowerCase())) errors.push(invalidValue(path, key, message));
      totalBytes += Buffer.byteLength(key) + Buffer.byteLength(value);
    }
  }
  if (totalBytes > totalAnnotationSizeLimitBytes) errors.push(tooLong(path, "", totalAnnotationSizeLimitBytes));
  return errors;
}

function* validatingOwnerReferences(references: readonly OwnerReference[] | undefined | null, path: string): Steps<FieldError[]> {
  const errors: FieldError[] = [];
  let firstController: string | undefined;
  /** Printed form of all references, reported with each superfluous controller. */
  let list: GoText | undefined;
  const isEmpty = neededFields.map((field) => invalidValue(child(path, field), "", `${field} must not be empty`));
  for (const some of chunksOf(references ?? [], validatedPerStep)) {
    if (some.length === validatedPerStep) yield;
    for (const reference of some) {
      const gv = parseGroupVersion(reference.apiVersion ?? "");
      if (!gv?.version)
        errors.push(invalidValue(child(path, "apiVersion"), reference.apiVersion ?? "", "version must not be empty"));
      for (let i = 0; i < neededFields.length; i++) if (!reference[neededFields[i]!]) errors.push(isEmpty[i]!);
      if (gv?.group === "" && gv.version === "v1" && reference.kind === "Event")
        errors.push(invalidValue(path, goOwnerReference(reference), "/v1, Kind=Event is disallowed from being an owner"));
      if (reference.controller !== true) continue;
      if (!firstController) firstController = reference.name;
      else {
        const text = `Only one reference can have Controller set to true. Found "true" in references for ${firstController} and ${reference.name}`;
        list ??= new GoText(`[]v1.OwnerReference{${(references ?? []).map((one) => goOwnerReference(one).text).join(", ")}}`);
        errors.push(invalidValue(path, list, text));
      }
    }
  }
  return errors;
}

/** Fields of an owner reference that must have a value. */
const neededFields = ["kind", "name", "uid"] as const;

/** Upstream prints the addresses of `*bool` fields; a constant address is used here. */
function goOwnerReference({ apiVersion, kind, name, uid, controller, blockOwnerDeletion }: OwnerReference): GoText {
  const bool = (value: boolean | undefined): string => (value === undefined ? "(*bool)(nil)" : "(*bool)(0xc000000000)");
  const text = `APIVersion:${goQuote(apiVersion ?? "")}, Kind:${goQuote(kind ?? "")}, Name:${goQuote(name ?? "")}, UID:${goQuote(uid ?? "")}`;
  return new GoText(`v1.OwnerReference{${text}, Controller:${bool(controller)}, BlockOwnerDeletion:${bool(blockOwnerDeletion)}}`);
}

function* validatingFinalizers(finalizers: readonly string[] | undefined | null, path: string): Steps<FieldError[]> {
  const errors: FieldError[] = [];
  for (const some of chunksOf(finalizers ?? [], validatedPerStep)) {
    if (some.length === validatedPerStep) yield;
    for (const name of some) for (const message of qualifiedNameProblems(name)) errors.push(invalidValue(path, name, message));
  }
  if (finalizers?.includes(orphanFinalizer) && finalizers.includes(foregroundFinalizer)) {
    const text = `finalizer ${orphanFinalizer} and ${foregroundFinalizer} cannot be both set`;
    errors.push(invalidValue(path, finalizers, text));
  }
  return errors;
}

const standardFinalizers = ["kubernetes", orphanFinalizer, foregroundFinalizer];

/**
 * For built-in kinds, a finalizer without domain has to be a standard one; custom resources allow any.
 * Source: pkg/apis/core/validation validateKubeFinalizerName
 */
export function validateKubeFinalizer(name: string, path: string): FieldError[] {
  if (name.includes("/") || standardFinalizers.includes(name)) return [];
  return [invalidValue(path, name, "name is neither a standard finalizer name nor is it fully qualified")];
}

function* validatingManagedFields(entries: readonly ManagedFieldsEntry[] | undefined | null, path: string): Steps<FieldError[]> {
  const errors: FieldError[] = [];
  const pace = new Pace(validatedPerStep);
  for (const [i, entry] of (entries ?? []).entries()) {
    if (pace.isDue()) yield;
    const at = index(path, i);
    if (entry.operation !== "Apply" && entry.operation !== "Update") {
      errors.push(invalidValue(child(at, "operation"), entry.operation ?? "", "must be `Apply` or `Update`"));
    }
    if (entry.fieldsType && entry.fieldsType !== "FieldsV1") {
      errors.push(invalidValue(child(at, "fieldsType"), entry.fieldsType, "must be `FieldsV1`"));
    }
    errors.push(...validateFieldManager(entry.manager ?? "", child(at, "manager")));
    const subresource = entry.subresource ?? "";
    if (Buffer.byteLength(subresource) > longestSubresource)
      errors.push(tooLong(child(at, "subresource"), subresource, longestSubresource));
  }
  return errors;
}

const printable = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u;

/** Positions in error texts are byte offsets. */
export function validateFieldManager(manager: string, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (Buffer.byteLength(manager) > longestManager) errors.push(tooLong(path, manager, longestManager));
  let position = 0;
  for (const character of manager) {
    if (!printable.test(character)) {
      const code = character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0");
      errors.push(invalidValue(path, manager, `invalid character U+${code} (at position ${position})`));
    }
    position += Buffer.byteLength(character);
  }
  return errors;
}

/** Replaces a trailing dash, which is allowed in generateName, so that the rest can be validated as a name. */
function maskTrailingDash(base: string): string {
  return base.length > 1 && base.endsWith("-") ? `${base.slice(0, -2)}a` : base;
}
