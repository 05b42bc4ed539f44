/**
 * Scale of a custom resource, at paths of plain fields: `.spec.replicas`.
 * Source: apiextensions-apiserver pkg/registry/customresource/etcd.go scaleFromCustomResource
 */
import { internalError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { CustomResourceSubresourceScale } from "@coxswain/apimachinery/objects/schema/kinds/apiextensions/v1";
import type { ScalePaths } from "../registry/generic/resource.ts";

/** Result of a lookup by path. */
interface Found<T> {
  /** undefined: the field is absent. */
  readonly value?: T;
  /** Error text when the field, or one above it, has another type. */
  readonly fault?: string;
}

/**
 * How `/scale` maps to an object of the definition. Its `checkRead` throws when a field has another type, or when the field with
 * the desired replicas is missing. An absent selector is `""`.
 */
export function scalePathsOf(scale: CustomResourceSubresourceScale): ScalePaths {
  const { specReplicasPath, statusReplicasPath, labelSelectorPath } = scale;
  return {
    version: "autoscaling/v1",
    specReplicas: specReplicasPath,
    statusReplicas: statusReplicasPath,
    leavesRules: true,
    selector: (object) => (labelSelectorPath ? (textAt(object, labelSelectorPath).value ?? "") : ""),
    checkRead(object) {
      const found = [numberAt(object, specReplicasPath), numberAt(object, statusReplicasPath)];
      const fault = found.find((one) => one.fault !== undefined)?.fault;
      if (fault !== undefined) throw new Error(fault);
      const name = specReplicasPath.replace(/^\./, "");
      if (found[0]?.value === undefined) throw internalError(new Error(`the spec replicas field "${name}" does not exist`));
    },
  };
}

/** The integer at a path; a bigint beyond 2^53. @param path `.spec.replicas` */
export function numberAt(object: KubeObject, path: string): Found<number | bigint> {
  return at(object, path, "int64", isInteger);
}

/** The string at a path. */
export function textAt(object: KubeObject, path: string): Found<string> {
  return at(object, path, "string", (value): value is string => typeof value === "string");
}

function at<T>(object: KubeObject, path: string, wanted: string, is: (value: unknown) => value is T): Found<T> {
  const parts = path.replace(/^\./, "").split(".");
  const fault = (end: number, value: unknown, type: string): Found<T> => ({
    fault: `.${parts.slice(0, end).join(".")} accessor error: ${goText(value)} is of the type ${goTypeOf(value)}, expected ${type}`,
  });
  let value: unknown = object;
  for (const [i, part] of parts.entries()) {
    if (value === null || value === undefined) return {};
    if (typeof value !== "object" || Array.isArray(value)) return fault(i + 1, value, "map[string]interface{}");
    if (!Object.hasOwn(value, part)) return {};
    value = (value as Record<string, unknown>)[part]; // cast: an object, by the lines above
  }
  return is(value) ? { value } : fault(parts.length, value, wanted);
}

function isInteger(value: unknown): value is number | bigint {
  return typeof value === "bigint" || (typeof value === "number" && Number.isInteger(value));
}

function goTypeOf(value: unknown): string {
  if (value === null) return "<nil>";
  if (Array.isArray(value)) return "[]interface {}";
  if (typeof value === "object") return "map[string]interface {}";
  if (isInteger(value)) return "int64";
  if (typeof value === "number") return "float64";
  return typeof value === "boolean" ? "bool" : typeof value;
}

/** The value formatted like Go's `%v`. */
function goText(value: unknown): string {
  if (value === null) return "<nil>";
  if (Array.isArray(value)) return `[${value.map(goText).join(" ")}]`;
  if (typeof value !== "object") return String(value);
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `map[${entries.map(([name, field]) => `${name}:${goText(field)}`).join(" ")}]`;
}
