/**
 * Maps ownership of the replicas field between the managedFields of an object and those of its Scale subresource.
 * Source: k8s.io/apiserver pkg/endpoints/handlers/fieldmanager/scalehandler.go
 */
import type { ManagedFieldsEntry } from "../../meta/types.ts";
import { difference, type FieldSet, has, setOf } from "./field-set.ts";
import { decodeManaged, encodeManaged, type ManagedSet, type ManagerId, managerId, withSet } from "./managed-fields.ts";
import { fieldElement, type Path } from "./path-element.ts";

interface ScaleEntries {
  /** The object's entries that own the replicas field, as entries of the Scale. */
  toScale(entries: readonly ManagedFieldsEntry[] | undefined): ManagedFieldsEntry[] | undefined;
  /** The object's entries after the Scale with `scaleEntries` was written. */
  toParent(
    entries: readonly ManagedFieldsEntry[] | undefined,
    scaleEntries: readonly ManagedFieldsEntry[] | undefined,
  ): ManagedFieldsEntry[] | undefined;
}

const scaleReplicas: FieldSet = setOf(["f:spec", "f:replicas"]);

/**
 * @param apiVersion group version of the object in the request path
 * @param scaleVersion group version of the Scale, e.g. `autoscaling/v1`
 * @param replicasPath path of the replicas field in the object, e.g. `.spec.replicas`
 */
export function newScaleEntries(apiVersion: string, scaleVersion: string, replicasPath: string): ScaleEntries {
  const path: Path = replicasPath
    .split(".")
    .filter((part) => part !== "")
    .map(fieldElement);
  const replicas = setOf(path);

  return {
    toScale(entries) {
      const owners = new Map<ManagerId, ManagedSet>();
      for (const entry of decodeManaged(entries).values()) {
        if (!has(entry.set, path)) continue;
        const owner = withSet({ ...entry, apiVersion: scaleVersion }, scaleReplicas);
        owners.set(managerId(owner), owner);
      }
      return encodeManaged(owners);
    },

    toParent(entries, scaleEntries) {
      const left = decodeManaged(scaleEntries);
      const parent = new Map<ManagerId, ManagedSet>();
      for (const [id, entry] of decodeManaged(entries)) {
        if (!has(entry.set, path)) {
          parent.set(id, entry);
          continue;
        }
        const stays = left.delete(managerId({ ...entry, apiVersion: scaleVersion }));
        const set = stays ? entry.set : difference(entry.set, replicas);
        if (set.size > 0) parent.set(id, set === entry.set ? entry : withSet(entry, set));
      }
      for (const entry of left.values()) {
        const owner = { ...entry, apiVersion };
        const id = managerId(owner);
        parent.set(id, withSet({ ...owner, time: parent.get(id)?.time }, replicas));
      }
      return encodeManaged(parent);
    },
  };
}
