import { posix } from "node:path";
import {
  addErrors,
  child,
  type FieldError,
  forbiddenField,
  invalidValue,
  notSupported,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { semanticEqual, semanticEqualInSteps } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { differencesText } from "@coxswain/apimachinery/objects/meta/differences";
import { goField, goStruct } from "@coxswain/apimachinery/objects/schema/go/go-print";
import type { PersistentVolume, PersistentVolumeSpec, ResourceList } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { dns1123Subdomain, fieldImmutableText, immutableField } from "../../field-checks.ts";
import { eachKeyInSteps, need, oneMember, optionalOneOf } from "../../rules.ts";
import { checkAccessModes } from "../persistentvolumeclaims/validation.ts";
import { validateNodeSelector } from "../pods/validation/affinity.ts";
import { checkNotNegative, checkPositive } from "../pods/validation/resources.ts";
import { moreThanOneText } from "../pods/validation/volume-sources.ts";
import { sourceOf, sources } from "./sources.ts";

/** @param oncePod the ReadWriteOncePod gate is on. Source: pkg/apis/core/validation ValidatePersistentVolume */
export function* validatePersistentVolume(volume: PersistentVolume, oncePod: boolean): Steps<FieldError[]> {
  return yield* validatePersistentVolumeSpec(volume.spec ?? {}, volume.metadata.name ?? "", "spec", oncePod);
}

function* validatePersistentVolumeSpec(
  spec: PersistentVolumeSpec,
  name: string,
  path: string,
  oncePod: boolean,
): Steps<FieldError[]> {
  const { capacity = {}, storageClassName } = spec;
  const at = child(path, "capacity");
  const errors = [
    ...need(spec.accessModes, child(path, "accessModes")),
    ...checkAccessModes(spec.accessModes, child(path, "accessModes"), oncePod),
  ];
  const { length: resources } = Object.keys(capacity);
  if (resources === 0) errors.push(required(at));
  if (!Object.hasOwn(capacity, "storage") || resources > 1)
    errors.push(
      notSupported(
        at,
        goField("core/v1.PersistentVolumeSpec", { capacity: spec.capacity && beginningOf(spec.capacity) }, "Capacity"),
        ["storage"],
      ),
    );
  const checkAmount = (_name: string, amount: string, own: string): FieldError[] => [
    ...checkNotNegative(amount, own),
    ...checkPositive(amount, own),
  ];
  addErrors(errors, yield* eachKeyInSteps(capacity, at, checkAmount));
  const reclaimPath = child(path, "persistentVolumeReclaimPolicy");
  errors.push(...optionalOneOf(spec.persistentVolumeReclaimPolicy || undefined, ["Delete", "Recycle", "Retain"], reclaimPath));
  addErrors(errors, yield* validateNodeAffinity(spec, child(path, "nodeAffinity")));
  const source = yield* oneMember(spec, sources(name), path, moreThanOneText);
  errors.push(...source.errors);
  if (spec.local && source.errors.every(({ field }) => field !== child(path, "local")) && !spec.nodeAffinity)
    errors.push(required(child(path, "nodeAffinity"), "Local volume requires node affinity"));
  if (source.found === 0) errors.push(required(path, "must specify a volume type"));
  if (isRoot(spec.hostPath?.path ?? "") && spec.persistentVolumeReclaimPolicy === "Recycle")
    errors.push(forbiddenField(reclaimPath, "may not be 'recycle' for a hostPath mount of '/'"));
  if (storageClassName) errors.push(...dns1123Subdomain(storageClassName, child(path, "storageClassName")));
  return [...errors, ...optionalOneOf(spec.volumeMode, ["Block", "Filesystem"], child(path, "volumeMode"))];
}

/** Resources that an error text shows: the conversion to Go syntax takes microseconds for each. */
const mostShown = 1000;

function beginningOf(capacity: ResourceList): ResourceList {
  const names = Object.keys(capacity);
  if (names.length <= mostShown) return capacity;
  return Object.fromEntries(names.slice(0, mostShown).map((name) => [name, capacity[name]!]));
}

/** Whether a path resolves to the root directory, e.g. `/a/..`. */
function isRoot(path: string): boolean {
  return path.startsWith("/") && posix.resolve(path) === "/";
}

/** Inline volume of a VolumeAttachment: only fields needed for attaching. Source: ValidatePersistentVolumeSpec, inline */
export function* validateInlineVolume(spec: PersistentVolumeSpec, path: string, oncePod: boolean): Steps<FieldError[]> {
  const text = "may not be specified in the context of inline volumes";
  const unwanted = (field: keyof PersistentVolumeSpec): FieldError[] =>
    spec[field] ? [forbiddenField(child(path, field), text)] : [];
  const source = yield* oneMember(spec, sources(""), path, moreThanOneText);
  const policy = spec.persistentVolumeReclaimPolicy;
  return [
    ...unwanted("claimRef"),
    ...(Object.keys(spec.capacity ?? {}).length > 0 ? unwanted("capacity") : []),
    ...(spec.csi ? [] : [required(child(path, "csi"), "has to be specified in the context of inline volumes")]),
    ...need(spec.accessModes, child(path, "accessModes")),
    ...checkAccessModes(spec.accessModes, child(path, "accessModes"), oncePod),
    ...(policy && policy !== "Retain"
      ? [forbiddenField(child(path, "persistentVolumeReclaimPolicy"), "may only be Retain in the context of inline volumes")]
      : []),
    ...unwanted("nodeAffinity"),
    ...source.errors,
    ...(source.found === 0 ? [required(path, "must specify a volume type")] : []),
    ...unwanted("storageClassName"),
    ...(spec.volumeMode !== undefined && spec.volumeMode !== "Filesystem"
      ? [
          forbiddenField(
            child(path, "volumeMode"),
            "may not specify volumeMode other than Filesystem in the context of inline volumes",
          ),
        ]
      : []),
  ];
}

function* validateNodeAffinity({ nodeAffinity }: PersistentVolumeSpec, path: string): Steps<FieldError[]> {
  if (!nodeAffinity) return [];
  const at = child(path, "required");
  if (!nodeAffinity.required) return [required(at, "must specify required node constraints")];
  return yield* validateNodeSelector(nodeAffinity.required, at);
}

/** The source is immutable. Two error paths lack `spec`, like upstream's. Source: ValidatePersistentVolumeUpdate */
export function* validatePersistentVolumeUpdate(
  next: PersistentVolume,
  current: PersistentVolume,
  oncePod: boolean,
): Steps<FieldError[]> {
  const old = current.spec ?? {};
  const errors = yield* validatePersistentVolume(next, oncePod || (old.accessModes ?? []).includes("ReadWriteOncePod"));
  yield;
  const { capacity: _capacity, ...others } = next.spec ?? {};
  const spec: PersistentVolumeSpec = { ...others, ...(others.csi && { csi: { ...others.csi } }) };
  // This secret may be added later, but not changed.
  if (old.csi && !old.csi.controllerExpandSecretRef && spec.csi) delete spec.csi.controllerExpandSecretRef;
  const [source, oldSource] = [sourceOf(spec), sourceOf(old)];
  if (!(yield* semanticEqualInSteps(source, oldSource))) {
    yield;
    const text = `spec.persistentvolumesource is immutable after creation\n${differencesText(oldSource, source)}`;
    errors.push(forbiddenField("spec.persistentvolumesource", text));
  }
  errors.push(...immutableField(spec.volumeMode, old.volumeMode, "volumeMode"));
  if (old.nodeAffinity && !semanticEqual(spec.nodeAffinity, old.nodeAffinity))
    errors.push(invalidValue("nodeAffinity", goStruct("core/v1.VolumeNodeAffinity", spec.nodeAffinity), fieldImmutableText));
  return errors;
}
