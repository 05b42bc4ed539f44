import { semanticEqual } from "@coxswain/apimachinery/meta/deep-equal";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";

/**
 * Is an update only for the garbage collector's sake? Who may not grant what an object grants may do that alone.
 * Source: pkg/registry/rbac/helpers.go IsOnlyMutatingGCFields
 */
export function changesOnlyGcFields(next: KubeObject, current: KubeObject): boolean {
  return semanticEqual(withoutGcFields(next), withoutGcFields(current));
}

function withoutGcFields(object: KubeObject): object {
  const { ownerReferences: _, finalizers: __, managedFields: ___, resourceVersion: ____, ...metadata } = object.metadata;
  return { ...object, metadata };
}
