import {
  child,
  duplicate,
  type FieldError,
  index,
  invalidValue,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { goStrings } from "@coxswain/apimachinery/objects/errors/go-syntax";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { CSIDriver } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import { checkDriverName } from "../../core/pods/validation/volume-sources.ts";
import { immutableField } from "../../field-checks.ts";
import type { Strategy } from "../../generic/strategy.ts";
import { optionalOneOf } from "../../rules.ts";

/** Source: pkg/registry/storage/csidriver/strategy.go, pkg/apis/storage/validation/validation.go */
export const csiDriverStrategy: Strategy<CSIDriver> = {
  namespaceScoped: false,
  allowCreateOnUpdate: false,
  allowUnconditionalUpdate: false,
  prepareForUpdate(next, current) {
    const generation = current.metadata.generation ?? 0;
    const changed =
      !semanticEqual(next.spec?.tokenRequests, current.spec?.tokenRequests) ||
      !semanticEqual(next.spec?.requiresRepublish, current.spec?.requiresRepublish);
    if (changed) next.metadata.generation = generation + 1;
    else if (current.metadata.generation !== undefined) next.metadata.generation = generation;
  },
  validate: (next) => validateDriver(next),
  validateUpdate(next, current) {
    const errors: FieldError[] = [];
    for (const [field, shownName] of immutableFields) {
      const value = next.spec?.[field];
      const shown = Array.isArray(value) ? goStrings("storage.VolumeLifecycleMode", value) : value;
      errors.push(...immutableField(value, current.spec?.[field], child("spec", shownName), () => shown));
    }
    return [...errors, ...validateTokenRequests(next)];
  },
};

/** Immutable fields and their names in upstream's error paths; storageCapacity is mutable since 1.23. */
const immutableFields = [
  ["attachRequired", "attachedRequired"],
  ["fsGroupPolicy", "fsGroupPolicy"],
  ["podInfoOnMount", "podInfoOnMount"],
  ["volumeLifecycleModes", "volumeLifecycleModes"],
] as const;

function validateDriver(driver: CSIDriver): FieldError[] {
  const spec = driver.spec ?? {};
  const errors = checkDriverName(driver.metadata.name ?? "", "name");
  for (const [field, shownName] of [
    ["attachRequired", "attachedRequired"],
    ["podInfoOnMount", "podInfoOnMount"],
    ["storageCapacity", "storageCapacity"],
  ] as const)
    if (spec[field] === undefined || spec[field] === null) errors.push(required(child("spec", shownName)));
  errors.push(...optionalOneOf(spec.fsGroupPolicy, ["File", "None", "ReadWriteOnceWithFSType"], "spec.fsGroupPolicy"));
  errors.push(...validateTokenRequests(driver));
  for (const mode of spec.volumeLifecycleModes ?? [])
    errors.push(...optionalOneOf(mode, ["Persistent", "Ephemeral"], "spec.volumeLifecycleModes"));
  return errors;
}

function validateTokenRequests({ spec }: CSIDriver): FieldError[] {
  const errors: FieldError[] = [];
  const audiences = new Set<string>();
  for (const [i, request] of (spec?.tokenRequests ?? []).entries()) {
    const at = index("spec.tokenRequests", i);
    const audience = request.audience ?? "";
    if (audiences.has(audience)) {
      errors.push(duplicate(child(at, "audience"), audience));
      continue;
    }
    audiences.add(audience);
    const seconds = request.expirationSeconds;
    if (seconds === undefined) continue;
    if (seconds < 600)
      errors.push(invalidValue(child(at, "expirationSeconds"), seconds, "may not specify a duration less than 10 minutes"));
    if (seconds > 2 ** 32)
      errors.push(invalidValue(child(at, "expirationSeconds"), seconds, "may not specify a duration larger than 2^32 seconds"));
  }
  return errors;
}
