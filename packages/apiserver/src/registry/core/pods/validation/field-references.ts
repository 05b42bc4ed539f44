import { child, type FieldError, invalidValue, notSupported, required } from "@coxswain/apimachinery/objects/errors/field-error";
import type { ObjectFieldSelector, ResourceFieldSelector } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { qualifiedNameProblems, quantityOf } from "../../../field-checks.ts";
import { need, saying } from "../../../rules.ts";

/**
 * Downward API references, in environment variables and volumes.
 * Source: pkg/apis/core/validation validateObjectFieldSelector, validateContainerResourceFieldSelector
 */
export const envFields = [
  "metadata.name",
  "metadata.namespace",
  "metadata.uid",
  "spec.nodeName",
  "spec.serviceAccountName",
  "status.hostIP",
  "status.podIP",
  "status.podIPs",
];
export const downwardVolumeFields = [
  "metadata.annotations",
  "metadata.labels",
  "metadata.name",
  "metadata.namespace",
  "metadata.uid",
];

/** Field labels known to upstream's conversion. Source: pkg/apis/core/pods ConvertDownwardAPIFieldLabel */
const convertibleFields = [
  "metadata.annotations",
  "metadata.labels",
  "metadata.name",
  "metadata.namespace",
  "metadata.uid",
  "spec.nodeName",
  "spec.restartPolicy",
  "spec.serviceAccountName",
  "spec.schedulerName",
  "status.phase",
  "status.hostIP",
  "status.podIP",
  "status.podIPs",
];
const oldNames: Readonly<Record<string, string>> = { "spec.host": "spec.nodeName" };

/** @param known supported fields, in the alphabetical order of the error text */
export function checkFieldRef(reference: ObjectFieldSelector, known: readonly string[], path: string): FieldError[] {
  if (!reference.apiVersion) return [required(child(path, "apiVersion"))];
  if (!reference.fieldPath) return [required(child(path, "fieldPath"))];
  const at = child(path, "fieldPath");
  const { fieldPath } = reference;
  if (reference.apiVersion !== "v1") {
    return [invalidValue(at, fieldPath, `error converting fieldPath: unsupported pod version: ${reference.apiVersion}`)];
  }
  const subscript = splitSubscript(fieldPath);
  if (subscript) {
    const { base, key } = subscript;
    if (base === "metadata.annotations") return saying(qualifiedNameProblems(key.toLowerCase()), key.toLowerCase(), path);
    if (base === "metadata.labels") return saying(qualifiedNameProblems(key), key, path);
    return [invalidValue(at, fieldPath, `error converting fieldPath: field label does not support subscript: ${fieldPath}`)];
  }
  const field = Object.hasOwn(oldNames, fieldPath) ? oldNames[fieldPath]! : fieldPath;
  if (!convertibleFields.includes(field)) {
    return [invalidValue(at, fieldPath, `error converting fieldPath: field label not supported: ${fieldPath}`)];
  }
  return known.includes(field) ? [] : [notSupported(at, field, known)];
}

/** `metadata.labels['app']`. Source: pkg/fieldpath SplitMaybeSubscriptedPath */
function splitSubscript(fieldPath: string): { base: string; key: string } | undefined {
  if (!fieldPath.endsWith("']")) return undefined;
  const start = fieldPath.indexOf("['");
  if (start <= 0) return undefined;
  return { base: fieldPath.slice(0, start), key: fieldPath.slice(start + 2, -2) };
}

const resources = [
  "limits.cpu",
  "limits.ephemeral-storage",
  "limits.memory",
  "requests.cpu",
  "requests.ephemeral-storage",
  "requests.memory",
];
const byteDivisors = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];
const byteDivisorText = `only divisor's values ${byteDivisors.join(", ")} are supported with the`;

/** Valid divisors by resource, and the error text for others. */
const divisors: readonly {
  readonly of: (resource: string) => boolean;
  readonly valid: readonly string[];
  readonly text: string;
}[] = [
  {
    of: (resource) => /^(limits|requests)\.cpu$/.test(resource),
    valid: ["1m", "1"],
    text: "only divisor's values 1m and 1 are supported with the cpu resource",
  },
  {
    of: (resource) => /^(limits|requests)\.memory$/.test(resource),
    valid: byteDivisors,
    text: `${byteDivisorText} memory resource`,
  },
  {
    of: (resource) => /^(limits|requests)\.ephemeral-storage$/.test(resource),
    valid: byteDivisors,
    text: `${byteDivisorText} local ephemeral storage resource`,
  },
  { of: isHugePagesReference, valid: byteDivisors, text: `${byteDivisorText} hugepages resource` },
];

/** @param hugePages references to huge pages are allowed (DownwardAPIHugePages) */
export function checkResourceFieldRef(
  reference: ResourceFieldSelector,
  path: string,
  { volume, hugePages }: { volume: boolean; hugePages: boolean },
): FieldError[] {
  const { resource = "" } = reference;
  const errors: FieldError[] = [];
  if (volume && !reference.containerName) errors.push(required(child(path, "containerName")));
  else if (resource === "") errors.push(...need(resource, child(path, "resource")));
  else if (!resources.includes(resource) && !(hugePages && isHugePagesReference(resource))) {
    errors.push(notSupported(child(path, "resource"), resource, resources));
  }
  const divisor = quantityOf(reference.divisor);
  const rule = divisors.find(({ of }) => of(resource));
  if (rule && !divisor.isZero && !rule.valid.includes(divisor.toString())) {
    errors.push(invalidValue(child(path, "divisor"), resource, rule.text));
  }
  return errors;
}

function isHugePagesReference(resource: string): boolean {
  return resource.startsWith("limits.hugepages-") || resource.startsWith("requests.hugepages-");
}
