import {
  addErrors,
  child,
  duplicate,
  type FieldError,
  forbiddenField,
  index,
  invalidValue,
  mapKey,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { goQuantity } from "@coxswain/apimachinery/objects/schema/go/go-print";
import type { LimitRange, LimitRangeItem } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { chunksOf, type Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { qualifiedNameProblems, quantityOf } from "../../field-checks.ts";
import { saying } from "../../rules.ts";
import { checkContainerResourceName, checkResourceName, overcommitAllowed } from "../pods/validation/resources.ts";

/** Source: pkg/apis/core/validation ValidateLimitRange */
export function* validateLimitRange(range: LimitRange): Steps<FieldError[]> {
  const types = new Set<string>();
  const errors: FieldError[] = [];
  for (const [i, item] of (range.spec?.limits ?? []).entries()) {
    const at = index("spec.limits", i);
    errors.push(...validateType(item.type ?? "", child(at, "type")));
    if (types.has(item.type)) errors.push(duplicate(child(at, "type"), item.type));
    types.add(item.type);
    addErrors(errors, yield* validateItem(item, at));
    if (i % namesPerStep === namesPerStep - 1) yield;
  }
  return errors;
}

/** Names of resources, or items, that are checked between two yields. */
const namesPerStep = 4096;

function validateType(type: string, path: string): FieldError[] {
  const errors = saying(qualifiedNameProblems(type), type, path);
  const known = type.includes("/") || ["Pod", "Container", "PersistentVolumeClaim"].includes(type);
  if (errors.length === 0 && !known) errors.push(invalidValue(path, type, "must be a standard limit type or fully qualified"));
  return errors;
}

type Field = "max" | "min" | "default" | "defaultRequest" | "maxLimitRequestRatio";

function* validateItem(item: LimitRangeItem, path: string): Steps<FieldError[]> {
  const ofPod = item.type === "Pod";
  const checkName = ofPod || item.type === "Container" ? checkContainerResourceName : checkResourceName;
  const names = new Set<string>();
  function* list(field: Field): Steps<FieldError[]> {
    const errors: FieldError[] = [];
    const at = child(path, field);
    for (const chunk of chunksOf(Object.keys(item[field] ?? {}), namesPerStep)) {
      for (const name of chunk) {
        names.add(name);
        errors.push(...checkName(name, mapKey(at, name)));
      }
      if (chunk.length === namesPerStep) yield;
    }
    return errors;
  }
  const notForPods = (field: Field): FieldError[] =>
    Object.keys(item[field] ?? {}).length > 0
      ? [forbiddenField(child(path, field), "may not be specified when `type` is 'Pod'")]
      : [];
  const errors = yield* list("max");
  addErrors(errors, yield* list("min"));
  for (const field of ["default", "defaultRequest"] as const) addErrors(errors, ofPod ? notForPods(field) : yield* list(field));
  if (item.type === "PersistentVolumeClaim" && item.min?.storage === undefined && item.max?.storage === undefined) {
    const text = "either minimum or maximum storage value is required, but neither was provided";
    errors.push(required(child(path, "limits"), text));
  }
  addErrors(errors, yield* list("maxLimitRequestRatio"));
  for (const chunk of chunksOf([...names], namesPerStep)) {
    for (const name of chunk) errors.push(...validateOrder(item, name, path));
    if (chunk.length === namesPerStep) yield;
  }
  return errors;
}

/** Ordering constraints: `low` > `high` is an error at field `at` with the value of field `shows`. */
const orders: readonly { low: Field; high: Field; at: Field; shows: Field; names: readonly [string, string] }[] = [
  { low: "min", high: "max", at: "min", shows: "min", names: ["min value", "max value"] },
  {
    low: "min",
    high: "defaultRequest",
    at: "defaultRequest",
    shows: "defaultRequest",
    names: ["min value", "default request value"],
  },
  {
    low: "defaultRequest",
    high: "max",
    at: "defaultRequest",
    shows: "defaultRequest",
    names: ["default request value", "max value"],
  },
  {
    low: "defaultRequest",
    high: "default",
    at: "defaultRequest",
    shows: "defaultRequest",
    names: ["default request value", "default limit value"],
  },
  { low: "min", high: "default", at: "default", shows: "min", names: ["min value", "default value"] },
  { low: "default", high: "max", at: "default", shows: "max", names: ["default value", "max value"] },
];

function validateOrder(item: LimitRangeItem, name: string, path: string): FieldError[] {
  const textOf = (field: Field): string | undefined => {
    // These fields are forbidden for pods (reported above) and are not compared.
    if (item.type === "Pod" && (field === "default" || field === "defaultRequest")) return undefined;
    const list = item[field];
    return list && Object.hasOwn(list, name) ? String(list[name]) : undefined;
  };
  const at = (field: Field): string => mapKey(child(path, field), name);
  const errors: FieldError[] = [];
  for (const { low, high, at: where, shows, names } of orders) {
    const [a, b] = [textOf(low), textOf(high)];
    if (a === undefined || b === undefined || quantityOf(a).cmp(quantityOf(b)) <= 0) continue;
    const text = `${names[0]} ${quantityOf(a)} is greater than ${names[1]} ${quantityOf(b)}`;
    errors.push(invalidValue(at(where), goQuantity(textOf(shows)!), text));
  }
  const ratio = textOf("maxLimitRequestRatio");
  if (ratio !== undefined) errors.push(...validateRatio(ratio, textOf("min"), textOf("max"), at("maxLimitRequestRatio")));
  const [normal, request] = [textOf("default"), textOf("defaultRequest")];
  if (
    !overcommitAllowed(name) &&
    normal !== undefined &&
    request !== undefined &&
    quantityOf(normal).cmp(quantityOf(request)) !== 0
  ) {
    const text = `default value ${quantityOf(normal)} must equal to defaultRequest value ${quantityOf(request)} in ${name}`;
    errors.push(invalidValue(at("defaultRequest"), goQuantity(request), text));
  }
  return errors;
}

function validateRatio(ratio: string, min: string | undefined, max: string | undefined, path: string): FieldError[] {
  const amount = quantityOf(ratio);
  const errors: FieldError[] = [];
  if (amount.cmp(quantityOf("1")) < 0) errors.push(invalidValue(path, goQuantity(ratio), `ratio ${amount} is less than 1`));
  if (min === undefined || max === undefined) return errors;
  const most = quantityOf(max).milliValue() / quantityOf(min).milliValue();
  if (amount.milliValue() / 1000 > most) {
    const text = `ratio ${amount} is greater than max/min = ${most.toFixed(6)}`;
    errors.push(invalidValue(path, goQuantity(ratio), text));
  }
  return errors;
}
