import {
  child,
  duplicate,
  type FieldError,
  index,
  invalidValue,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { goStruct } from "@coxswain/apimachinery/objects/schema/go/go-print";
import type { CSINode } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import { checkDriverName } from "../../core/pods/validation/volume-sources.ts";
import { fieldImmutableText, isNegativeText, qualifiedNameProblems } from "../../field-checks.ts";
import type { Strategy } from "../../generic/strategy.ts";
import { saying } from "../../rules.ts";

/** Source: pkg/registry/storage/csinode/strategy.go, pkg/apis/storage/validation/validation.go */
export const csiNodeStrategy: Strategy<CSINode> = {
  namespaceScoped: false,
  allowCreateOnUpdate: false,
  allowUnconditionalUpdate: false,
  validate: (next) => validateNode(next),
  validateUpdate(next, current) {
    const byName = Map.groupBy(next.spec?.drivers ?? [], ({ name }) => name);
    const changed = (current.spec?.drivers ?? []).flatMap((old) =>
      (byName.get(old.name) ?? []).filter((driver) => !semanticEqual(driver, old)),
    );
    return [
      ...changed.map((driver) => invalidValue("CSINodeDriver", goStruct("storage/v1.CSINodeDriver", driver), fieldImmutableText)),
      ...validateNode(next),
    ];
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
    if (count !== undefined && count < 0) errors.push(invalidValue(child(at, "allocatable.count"), count, isNegativeText));
    if (names.has(driver.name)) errors.push(duplicate(child(at, "name"), driver.name));
    names.add(driver.name);
    const keys = driver.topologyKeys ?? [];
    const known = new Set<string>();
    for (const key of keys) {
      if (key === "") errors.push(required(at));
      if (known.has(key)) errors.push(duplicate(at, key));
      known.add(key);
      errors.push(...saying(qualifiedNameProblems(key), keys, at));
    }
  }
  return errors;
}
