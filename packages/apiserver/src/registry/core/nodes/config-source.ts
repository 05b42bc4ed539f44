import {
  child,
  type FieldError,
  forbiddenField,
  invalidValue,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { goStruct } from "@coxswain/apimachinery/objects/schema/go/go-print";
import type {
  ConfigMapNodeConfigSource,
  NodeConfigSource,
  NodeConfigStatus,
} from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { configMapKeyProblems, dns1123LabelProblems, dns1123SubdomainProblems } from "../../field-checks.ts";
import { saying } from "../../rules.ts";

/** Dynamic kubelet configuration. Source: pkg/apis/core/validation validateNodeConfigSourceSpec */
export function validateConfigSource(source: NodeConfigSource, path: string): FieldError[] {
  return oneReference(source, path, (map, at) => [
    ...(map.uid ? [forbiddenField(child(at, "uid"), "uid must not be set in spec")] : []),
    ...(map.resourceVersion ? [forbiddenField(child(at, "resourceVersion"), "resourceVersion must not be set in spec")] : []),
  ]);
}

/**
 * References in a status must have uid and resourceVersion, unlike that in the spec.
 * Source: pkg/apis/core/validation validateNodeConfigStatus
 */
export function validateConfigStatus(status: NodeConfigStatus, path: string): FieldError[] {
  return (["assigned", "active", "lastKnownGood"] as const).flatMap((field) => {
    const source = status[field];
    if (!source) return [];
    return oneReference(source, child(path, field), (map, at) => [
      ...(map.uid ? [] : [required(child(at, "uid"), "uid must be set in status")]),
      ...(map.resourceVersion ? [] : [required(child(at, "resourceVersion"), "resourceVersion must be set in status")]),
    ]);
  });
}

function oneReference(
  source: NodeConfigSource,
  path: string,
  check: (map: ConfigMapNodeConfigSource, path: string) => FieldError[],
): FieldError[] {
  const map = source.configMap;
  if (!map)
    return [invalidValue(path, goStruct("core/v1.NodeConfigSource", source), "exactly one reference subfield must be non-nil")];
  const at = child(path, "configMap");
  return [...check(map, at), ...validateMap(map, at)];
}

const parts = [
  { field: "namespace", check: dns1123LabelProblems },
  { field: "name", check: dns1123SubdomainProblems },
  { field: "kubeletConfigKey", check: configMapKeyProblems },
] as const;

function validateMap(map: ConfigMapNodeConfigSource, path: string): FieldError[] {
  return parts.flatMap(({ field, check }) => {
    const value = map[field];
    const at = child(path, field);
    return value ? saying(check(value), value, at) : [required(at, `${field} must be set`)];
  });
}
