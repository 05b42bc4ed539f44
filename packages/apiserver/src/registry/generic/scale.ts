import { invalidValue } from "@coxswain/apimachinery/objects/errors/field-error";
import { badRequest, invalid } from "@coxswain/apimachinery/objects/errors/status-error";
import { isContainer } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { isNegativeText } from "@coxswain/apimachinery/objects/validation/object-meta";
import type { ScalePaths } from "./resource.ts";

/**
 * Builds the Scale of an object, the kind that all `/scale` subresources share.
 * Source: pkg/registry/apps/deployment/storage/storage.go scaleFromDeployment, ScaleREST
 */
export function scaleOf(object: KubeObject, paths: ScalePaths): KubeObject {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  const selector = paths.selector(object);
  const spec: Record<string, unknown> = {};
  const replicas = numberAt(object, paths.specReplicas);
  if (replicas !== 0) spec["replicas"] = replicas;
  const scale = {
    kind: "Scale",
    apiVersion: paths.version,
    metadata: {
      ...(name !== undefined && { name }),
      ...(namespace !== undefined && { namespace }),
      ...(uid !== undefined && { uid }),
      ...(resourceVersion !== undefined && { resourceVersion }),
      ...(creationTimestamp !== undefined && { creationTimestamp }),
    },
    spec,
    status: { replicas: numberAt(object, paths.statusReplicas), ...(selector !== "" && { selector }) },
  };
  return scale;
}

/**
 * Sets the replicas and resourceVersion of a Scale on an object, in place.
 * @param object a copy that the caller owns
 * @throws BadRequest, Invalid
 */
export function applyScale(object: KubeObject, scale: KubeObject, paths: ScalePaths): KubeObject {
  if (scale.kind !== undefined && scale.kind !== "Scale") {
    throw badRequest(`wrong object passed to Scale update: ${scale.kind}`);
  }
  const replicas = numberAt(scale, "spec.replicas");
  if (replicas < 0 && !paths.leavesRules) {
    throw invalid({ group: "autoscaling", kind: "Scale" }, scale.metadata?.name ?? "", [
      invalidValue("spec.replicas", replicas, isNegativeText),
    ]);
  }
  setAt(object, paths.specReplicas, replicas);
  // Empty: unconditional update. Otherwise the store's check detects a concurrent change.
  const own = paths.leavesRules ? object.metadata.resourceVersion : undefined;
  object.metadata.resourceVersion = scale.metadata?.resourceVersion || own || "";
  return object;
}

/** @param path `spec.replicas`, `.spec.replicas` */
function partsOf(path: string): string[] {
  return path.split(".").filter((part) => part !== "");
}

/** The number at a path as an int32, cut off like Go's conversion; 0 when there is none. */
function numberAt(object: KubeObject, path: string): number {
  let value: unknown = object;
  for (const part of partsOf(path)) {
    if (!isContainer(value) || !Object.hasOwn(value, part)) return 0;
    value = value[part];
  }
  if (typeof value === "number") return value | 0;
  return typeof value === "bigint" ? Number(BigInt.asIntN(32, value)) : 0;
}

function setAt(object: KubeObject, path: string, number: number): void {
  const parts = partsOf(path);
  const last = parts.pop()!;
  let target = object as unknown as Record<string, unknown>; // cast: a path of field names leads through it
  for (const part of parts) {
    if (!Object.hasOwn(target, part) || typeof target[part] !== "object" || target[part] === null) put(target, part, {});
    target = target[part] as Record<string, unknown>; // cast: an object, which the line before has put there if need be
  }
  put(target, last, number);
}

/** Paths may come from CRDs: defineProperty treats `__proto__` like any other key. */
function put(target: Record<string, unknown>, key: string, value: unknown): void {
  Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
}
