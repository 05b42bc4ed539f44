import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import { forbiddenField, invalidValue, required } from "@coxswain/apimachinery/errors/field-error";
import { child, mapKey } from "@coxswain/apimachinery/errors/field-path";
import type { ResourceList, ResourceRequirements } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { isNegativeText, isQualifiedName, quantityOf } from "../../../field-checks.ts";

const standardContainerResources = ["cpu", "memory", "ephemeral-storage"];
const standardResources = [
  ...standardContainerResources,
  "storage",
  "pods",
  "services",
  "replicationcontrollers",
  "resourcequotas",
  "secrets",
  "configmaps",
  "persistentvolumeclaims",
  "services.nodeports",
  "services.loadbalancers",
  "requests.cpu",
  "requests.memory",
  "requests.storage",
  "requests.ephemeral-storage",
  "limits.cpu",
  "limits.memory",
  "limits.ephemeral-storage",
];
/** Amounts of these come in whole pieces. */
const integerResources = [
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
const nativePrefix = "kubernetes.io/";
const requestsPrefix = "requests.";

/** cpu and the like, or a domain-prefixed name outside kubernetes.io. Source: pkg/apis/core/v1/helper IsExtendedResourceName */
export function isExtendedResource(name: string): boolean {
  return !isNativeResource(name) && !name.startsWith(requestsPrefix) && isQualifiedName(`${requestsPrefix}${name}`).length === 0;
}

function isNativeResource(name: string): boolean {
  return !name.includes("/") || name.includes(nativePrefix);
}

function isHugePage(name: string): boolean {
  return name.startsWith("hugepages-");
}

function isIntegerResource(name: string): boolean {
  return integerResources.includes(name) || isExtendedResource(name);
}

export function checkResourceName(name: string, path: string): FieldError[] {
  const errors = isQualifiedName(name).map((message) => invalidValue(path, name, message));
  if (errors.length === 0 && !name.includes("/") && !standardResources.includes(name) && !isHugePage(name)) {
    errors.push(invalidValue(path, name, "must be a standard resource type or fully qualified"));
  }
  return errors;
}

function checkContainerResourceName(name: string, path: string): FieldError[] {
  const errors = checkResourceName(name, path);
  if (errors.length > 0) return errors;
  if (!name.includes("/")) {
    if (!standardContainerResources.includes(name) && !isHugePage(name)) {
      errors.push(invalidValue(path, name, "must be a standard resource for containers"));
    }
  } else if (!isNativeResource(name) && !isExtendedResource(name)) {
    errors.push(invalidValue(path, name, "doesn't follow extended resource name standard"));
  }
  return errors;
}

/** Source: pkg/apis/core/validation ValidateResourceQuantityValue */
export function checkQuantity(name: string, value: unknown, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const quantity = quantityOf(value as string);
  if (quantity.sign < 0) errors.push(invalidValue(path, quantity.toString(), isNegativeText));
  if (isIntegerResource(name) && quantity.milliValue() % 1000 !== 0) {
    errors.push(invalidValue(path, quantity.toString(), "must be an integer"));
  }
  return errors;
}

/** Source: pkg/apis/core/validation ValidateResourceRequirements */
export function validateResourceRequirements(requirements: ResourceRequirements | undefined, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const limits: ResourceList = requirements?.limits ?? {};
  const requests: ResourceList = requirements?.requests ?? {};
  let cpuOrMemory = false;
  let hugePages = false;
  for (const [name, value] of Object.entries(limits)) {
    const at = mapKey(child(path, "limits"), name);
    errors.push(...checkContainerResourceName(name, at), ...checkQuantity(name, value, at));
    if (isHugePage(name)) hugePages = true;
    if (name === "cpu" || name === "memory") cpuOrMemory = true;
  }
  for (const [name, value] of Object.entries(requests)) {
    const at = mapKey(child(path, "requests"), name);
    errors.push(...checkContainerResourceName(name, at), ...checkQuantity(name, value, at));
    const limit = Object.hasOwn(limits, name) ? limits[name] : undefined;
    const text = quantityOf(value as string).toString();
    if (limit !== undefined) {
      const order = quantityOf(value as string).cmp(quantityOf(limit as string));
      if (order !== 0 && !overcommitAllowed(name)) {
        errors.push(invalidValue(child(path, "requests"), text, `must be equal to ${name} limit`));
      } else if (order > 0) {
        errors.push(invalidValue(child(path, "requests"), text, `must be less than or equal to ${name} limit`));
      }
    } else if (!overcommitAllowed(name)) {
      errors.push(required(child(path, "limits"), "Limit must be set for non overcommitable resources"));
    }
    if (isHugePage(name)) hugePages = true;
    if (name === "cpu" || name === "memory") cpuOrMemory = true;
  }
  if (hugePages && !cpuOrMemory) errors.push(forbiddenField(path, "HugePages require cpu or memory"));
  return errors;
}

function overcommitAllowed(name: string): boolean {
  return isNativeResource(name) && !isHugePage(name);
}
