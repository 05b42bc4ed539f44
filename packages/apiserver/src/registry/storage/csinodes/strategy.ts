import {
  addErrors,
  child,
  duplicate,
  type FieldError,
  invalidValue,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { goStruct } from "@coxswain/apimachinery/objects/schema/go/go-print";
import type { CSINode } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { checkDriverName } from "../../core/pods/validation/volume-sources.ts";
import { fieldImmutableText, isNegativeText, qualifiedNameProblems } from "../../field-checks.ts";
import type { Strategy } from "../../generic/strategy.ts";
import { eachInSteps, eachWithSteps, saying } from "../../rules.ts";

/** Source: pkg/registry/storage/csinode/strategy.go, pkg/apis/storage/validation/validation.go */
export const csiNodeStrategy: Strategy<CSINode> = {
  namespaceScoped: false,
  allowCreateOnUpdate: false,
  allowUnconditionalUpdate: false,
  *validateInSteps(next, current) {
    if (current === undefined) return yield* validateNode(next);
    const byName = Map.groupBy(next.spec?.drivers ?? [], ({ name }) => name);
    const changed = (current.spec?.drivers ?? []).flatMap((old) =>
      (byName.get(old.name) ?? []).filter((driver) => !semanticEqual(driver, old)),
    );
    yield;
    const errors = yield* eachInSteps(changed, "", (driver) => [
      invalidValue("CSINodeDriver", goStruct("storage/v1.CSINodeDriver", driver), fieldImmutableText),
    ]);
    addErrors(errors, yield* validateNode(next));
    return errors;
  },
};

function validateNode(node: CSINode): Steps<FieldError[]> {
  const names = new Set<string>();
  return eachWithSteps(node.spec?.drivers, "spec.drivers", function* (driver, at) {
    const errors: FieldError[] = [];
    errors.push(...checkDriverName(driver.name ?? "", child(at, "name")));
    if (!driver.nodeID) errors.push(required(child(at, "nodeID"), ""));
    else if (Buffer.byteLength(driver.nodeID) > 192)
      errors.push(invalidValue(child(at, "nodeID"), driver.nodeID, "must be 192 characters or less"));
    const count = driver.allocatable?.count;
    if (count !== undefined && count < 0) errors.push(invalidValue(child(at, "allocatable.count"), count, isNegativeText));
    if (names.has(driver.name)) errors.push(duplicate(child(at, "name"), driver.name));
    names.add(driver.name);
    const keys = driver.topologyKeys ?? [];
    const known = new Set<string>();
    const faults = yield* eachInSteps(keys, "", (key) => {
      const found = saying(qualifiedNameProblems(key), keys, at);
      if (known.has(key)) found.unshift(duplicate(at, key));
      if (key === "") found.unshift(required(at));
      known.add(key);
      return found;
    });
    addErrors(errors, faults);
    return errors;
  });
}
