import { formatGroupVersion, type GroupVersionKind } from "./group-version.ts";
import type { KubeObject, OwnerReference } from "./types.ts";

type HasMeta = Pick<KubeObject, "metadata">;

/** The controlling owner reference; undefined when there is none. */
export function controllerOf(object: HasMeta): OwnerReference | undefined {
  for (const reference of object.metadata.ownerReferences ?? []) if (reference.controller === true) return reference;
  return undefined;
}

/** Compares UIDs: an owner that was deleted and recreated is a different object. */
export function isControlledBy(object: HasMeta, owner: HasMeta): boolean {
  const controller = controllerOf(object);
  return controller !== undefined && controller.uid === owner.metadata.uid;
}

/**
 * The reference that makes `owner` the controller; the garbage collector deletes the object first in a foreground deletion of the
 * owner.
 */
export function newControllerRef(owner: HasMeta, gvk: GroupVersionKind): OwnerReference {
  return {
    apiVersion: formatGroupVersion(gvk),
    kind: gvk.kind,
    name: owner.metadata.name ?? "",
    uid: owner.metadata.uid ?? "",
    controller: true,
    blockOwnerDeletion: true,
  };
}

/**
 * A strategic merge patch that adds an owner reference. The uid makes the patch fail on another object of the same name.
 * Source: controller_ref_manager.go, AdoptPod
 */
export function adoptPatch(controller: OwnerReference, uid: string, finalizers?: readonly string[]): unknown {
  return { metadata: { ownerReferences: [controller], uid, ...(finalizers === undefined ? {} : { finalizers }) } };
}

/** A strategic merge patch that removes owner references and finalizers. Source: GenerateDeleteOwnerRefStrategicMergeBytes */
export function releasePatch(ownerUids: readonly string[], uid: string, finalizers: readonly string[] = []): unknown {
  const metadata: Record<string, unknown> = {
    uid,
    ownerReferences: ownerUids.map((owner) => ({ $patch: "delete", uid: owner })),
  };
  if (finalizers.length > 0) metadata["$deleteFromPrimitiveList/finalizers"] = finalizers;
  return { metadata };
}
