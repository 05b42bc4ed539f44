import {
  addErrors,
  child,
  type FieldError,
  forbiddenField,
  invalidValue,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { Quantity } from "@coxswain/apimachinery/objects/meta/quantity";
import { goQuantity } from "@coxswain/apimachinery/objects/schema/go/go-print";
import type { ResourceList, ResourceRequirements } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { isExtendedResource, isNativeResource, requestsPrefix } from "@coxswain/apimachinery/objects/validation/resource-names";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { isNegativeText, qualifiedNameProblems, quantityOf } from "../../../field-checks.ts";
import { eachKeyInSteps, saying } from "../../../rules.ts";

/** Names and amounts of resources. Source: pkg/apis/core/helper, pkg/apis/core/validation */
const containerResources = ["cpu", "memory", "ephemeral-storage"];
/** Resources whose amounts must be integers. */
const objectCounts = [
  "pods",
  "services",
  "replicationcontrollers",
  "resourcequotas",
  "secrets",
  "configmaps",
  "persistentvolumeclaims",
  "services.nodeports",
  "services.loadbalancers",
];
const standardResources = new Set([
  ...containerResources,
  ...objectCounts,
  ...["requests", "limits"].flatMap((side) => containerResources.map((name) => `${side}.${name}`)),
  "storage",
  "requests.storage",
]);
const hugePagesPrefix = "hugepages-";

export function isHugePage(name: string): boolean {
  return name.startsWith(hugePagesPrefix);
}

/** Whether the sum of limits may exceed the capacity of a node: native resources except huge pages. */
export function overcommitAllowed(name: string): boolean {
  return isNativeResource(name) && !isHugePage(name);
}

/** Whether an amount is a multiple of the page size in the resource name. */
export function pageSizeFits(name: string, amount: Quantity): boolean {
  const size = Quantity.tryParse(name.slice(hugePagesPrefix.length));
  return size !== undefined && size.sign > 0 && amount.nanos % size.nanos === 0n;
}

/**
 * The name of any resource: a qualified name; without a domain, one of the standard names. Source: pkg/apis/core/validation
 * validateResourceName
 */
export function checkResourceName(name: string, path: string): FieldError[] {
  const errors = saying(qualifiedNameProblems(name), name, path);
  const known = name.includes("/") || standardResources.has(name) || isHugePage(name) || isHugePage(withoutRequests(name));
  if (errors.length === 0 && !known) errors.push(invalidValue(path, name, "must be a standard resource type or fully qualified"));
  return errors;
}

function withoutRequests(name: string): string {
  return name.startsWith(requestsPrefix) ? name.slice(requestsPrefix.length) : name;
}

/** A resource that a container may request. Source: validateContainerResourceName */
export function checkContainerResourceName(name: string, path: string): FieldError[] {
  const errors = checkResourceName(name, path);
  if (!name.includes("/")) {
    if (!containerResources.includes(name) && !isHugePage(name))
      errors.push(invalidValue(path, name, "must be a standard resource for containers"));
  } else if (!isNativeResource(name) && !isExtendedResource(name)) {
    errors.push(invalidValue(path, name, "doesn't follow extended resource name standard"));
  }
  return errors;
}

/**
 * An amount of the resource `name`: not negative; an integer for object counts and extended resources.
 * Source: pkg/apis/core/validation ValidateResourceQuantityValue
 */
export function checkQuantity(name: string, value: unknown, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const quantity = quantityOf(value);
  if (quantity.sign < 0) errors.push(invalidValue(path, quantity.toString(), isNegativeText));
  if (quantity.nanos % 1_000_000_000n !== 0n && (objectCounts.includes(name) || isExtendedResource(name)))
    errors.push(invalidValue(path, goQuantity(String(value)), "must be an integer"));
  return errors;
}

/** A missing or malformed amount counts as 0, which is an error. */
export function checkPositive(value: unknown, path: string): FieldError[] {
  const quantity = quantityOf(value);
  return quantity.sign > 0 ? [] : [invalidValue(path, quantity.toString(), "must be greater than zero")];
}

/**
 * Without a rule for integers, and with another text than `checkQuantity`.
 * Source: pkg/apis/core/validation validateBasicResource
 */
export function checkNotNegative(value: unknown, path: string): FieldError[] {
  const quantity = quantityOf(value);
  return quantity.sign < 0 ? [invalidValue(path, quantity.value(), "must be a valid resource quantity")] : [];
}

/** @param partialHugePages see PodValidationOptions. Source: pkg/apis/core/validation ValidateResourceRequirements */
export function* validateResourceRequirements(
  requirements: ResourceRequirements | undefined | null,
  path: string,
  { partialHugePages }: { partialHugePages: boolean },
): Steps<FieldError[]> {
  const limits: ResourceList = requirements?.limits ?? {};
  const requests: ResourceList = requirements?.requests ?? {};
  const oneAmount = (name: string, value: unknown, at: string): FieldError[] => [
    ...checkContainerResourceName(name, at),
    ...checkQuantity(name, value, at),
  ];
  const pages = (name: string, value: unknown, at: string): FieldError[] => {
    if (!isHugePage(name) || partialHugePages) return [];
    const amount = quantityOf(value);
    if (pageSizeFits(name, amount)) return [];
    return [invalidValue(at, amount.toString(), `${amount.toString()} is not positive integer multiple of ${name}`)];
  };
  const errors = yield* eachKeyInSteps(limits, child(path, "limits"), (name, value, at) => [
    ...oneAmount(name, value, at),
    ...pages(name, value, at),
  ]);
  const ofRequests = yield* eachKeyInSteps(requests, child(path, "requests"), (name, value, at) => {
    const limit = Object.hasOwn(limits, name) ? limits[name]! : undefined;
    return [...oneAmount(name, value, at), ...fitsLimit(name, value, limit, path), ...pages(name, value, at)];
  });
  addErrors(errors, ofRequests);
  const names = [...Object.keys(limits), ...Object.keys(requests)];
  if (names.some(isHugePage) && !names.some((name) => name === "cpu" || name === "memory"))
    errors.push(forbiddenField(path, "HugePages require cpu or memory"));
  return errors;
}

/** A request must not exceed its limit; for resources without overcommit both are required and equal. */
function fitsLimit(name: string, request: string, limit: string | undefined, path: string): FieldError[] {
  const exact = !overcommitAllowed(name);
  if (limit === undefined)
    return exact ? [required(child(path, "limits"), "Limit must be set for non overcommitable resources")] : [];
  const order = quantityOf(request).cmp(quantityOf(limit));
  const report = (text: string): FieldError[] => [invalidValue(child(path, "requests"), quantityOf(request).toString(), text)];
  if (exact && order !== 0) return report(`must be equal to ${name} limit`);
  return order > 0 ? report(`must be less than or equal to ${name} limit`) : [];
}
