import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";

/**
 * Whether an update changes only owner references and finalizers; such updates need no escalation check.
 * Source: pkg/registry/rbac/helpers.go IsOnlyMutatingGCFields
 */
export function changesOnlyGcFields(next: KubeObject, current: KubeObject): boolean {
  return semanticEqual(withoutGcFields(next), withoutGcFields(current));
}

function withoutGcFields(object: KubeObject): object {
  const { ownerReferences: _, finalizers: __, managedFields: ___, resourceVersion: ____, ...metadata } = object.metadata;
  return { ...object, metadata };
}
