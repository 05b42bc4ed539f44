import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import { duplicate, invalidValue, required } from "@coxswain/apimachinery/errors/field-error";
import { child, index } from "@coxswain/apimachinery/errors/field-path";
import type { CSINode } from "@coxswain/apimachinery/schema/kinds/storage/v1";
import { checkDriverName } from "../../core/pods/validation/volume-sources.ts";
import { immutableField, qualifiedName } from "../../field-checks.ts";
import type { Strategy } from "../../generic/strategy.ts";

/** Source: pkg/registry/storage/csinode/strategy.go, pkg/apis/storage/validation/validation.go */
export const csiNodeStrategy: Strategy<CSINode> = {
  namespaceScoped: false,
  allowCreateOnUpdate: false,
  allowUnconditionalUpdate: false,
  validate: (next) => validateNode(next),
  validateUpdate(next, current) {
    const errors = validateNode(next);
    for (const [i, driver] of (next.spec?.drivers ?? []).entries()) {
      const old = (current.spec?.drivers ?? []).find((d) => d.name === driver.name);
      if (old) errors.push(...immutableField(driver, old, index("spec.drivers", i)));
    }
    return errors;
  },
};

function validateNode(node: CSINode): FieldError[] {
  const errors: FieldError[] = [];
  const names = new Set<string>();
  for (const [i, driver] of (node.spec?.drivers ?? []).entries()) {
    const at = index("spec.drivers", i);
    errors.push(...checkDriverName(driver.name ?? "", child(at, "name")));
    if (!driver.nodeID) errors.push(required(child(at, "nodeID"), ""));
    else if (driver.nodeID.length > 192)
      errors.push(invalidValue(child(at, "nodeID"), driver.nodeID, "must be 192 characters or less"));
    const count = driver.allocatable?.count;
    if (count !== undefined && count < 0)
      errors.push(invalidValue(child(at, "allocatable.count"), count, "must be greater than or equal to 0"));
    for (const key of driver.topologyKeys ?? []) {
      if (key === "") errors.push(required(child(at, "topologyKeys")));
      else errors.push(...qualifiedName(key, child(at, "topologyKeys")));
    }
    if (names.has(driver.name)) errors.push(duplicate(child(at, "name"), driver.name));
    names.add(driver.name);
  }
  return errors;
}
