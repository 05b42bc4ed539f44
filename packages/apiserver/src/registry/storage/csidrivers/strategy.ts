import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import { duplicate, invalidValue, notSupported } from "@coxswain/apimachinery/errors/field-error";
import { child, index } from "@coxswain/apimachinery/errors/field-path";
import { semanticEqual } from "@coxswain/apimachinery/meta/deep-equal";
import type { CSIDriver } from "@coxswain/apimachinery/schema/kinds/storage/v1";
import { checkDriverName } from "../../core/pods/validation/volume-sources.ts";
import { immutableField, oneOf } from "../../field-checks.ts";
import type { Strategy } from "../../generic/strategy.ts";

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
    const errors = validateDriver(next);
    for (const field of [
      "attachRequired",
      "podInfoOnMount",
      "volumeLifecycleModes",
      "storageCapacity",
      "fsGroupPolicy",
    ] as const) {
      errors.push(...immutableField(next.spec?.[field], current.spec?.[field], child("spec", field)));
    }
    return errors;
  },
};

function validateDriver(driver: CSIDriver): FieldError[] {
  const errors = checkDriverName(driver.metadata.name ?? "", "metadata.name");
  const spec = driver.spec ?? {};
  if (spec.fsGroupPolicy !== undefined) {
    errors.push(...oneOf(spec.fsGroupPolicy, ["ReadWriteOnceWithFSType", "File", "None"], "spec.fsGroupPolicy"));
  }
  for (const [i, mode] of (spec.volumeLifecycleModes ?? []).entries()) {
    if (mode !== "Persistent" && mode !== "Ephemeral") {
      errors.push(notSupported(index("spec.volumeLifecycleModes", i), mode, ["Ephemeral", "Persistent"]));
    }
  }
  const audiences = new Set<string>();
  for (const [i, request] of (spec.tokenRequests ?? []).entries()) {
    const at = index("spec.tokenRequests", i);
    const audience = request.audience ?? "";
    if (audiences.has(audience)) errors.push(duplicate(child(at, "audience"), audience));
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
