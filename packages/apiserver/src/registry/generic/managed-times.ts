/** Timestamps of managedFields in writes that change nothing else. */
import { deepEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { KubeObject, ManagedFieldsEntry } from "@coxswain/apimachinery/objects/meta/types";

/**
 * Restores the stored managedFields when only their timestamps differ. Applying an unchanged manifest gets a new timestamp
 * when the manifest names a field that the server sets (`creationTimestamp: null`, as generators write it). Without this,
 * each such apply would be a write and an event for all watchers.
 * Source: k8s.io/apiserver pkg/endpoints/handlers/fieldmanager/equality.go (1.24)
 * @param next the new state after prepareForUpdate; modified in place
 */
export function keepTimesWhenUnchanged(next: KubeObject, current: KubeObject): void {
  const requested = next.metadata.managedFields;
  const stored = current.metadata.managedFields;
  if (requested === undefined || stored === undefined || requested === stored || !onlyTimesDiffer(requested, stored)) return;
  next.metadata.managedFields = stored;
  if (!deepEqual(next, current)) next.metadata.managedFields = requested;
}

function onlyTimesDiffer(requested: readonly ManagedFieldsEntry[], stored: readonly ManagedFieldsEntry[]): boolean {
  if (requested.length !== stored.length) return false;
  // Cheap early exit: when all timestamps are equal there is nothing to restore.
  if (requested.every((entry, at) => entry.time === stored[at]?.time)) return false;
  const keyed = (entries: readonly ManagedFieldsEntry[]): Map<string, ManagedFieldsEntry> =>
    new Map(
      entries.map((entry) => [JSON.stringify([entry.manager, entry.operation, entry.apiVersion, entry.subresource]), entry]),
    );
  // Entries are sorted by time, so a new timestamp may move an entry: compare by key instead of by index.
  const before = keyed(stored);
  for (const [key, { time, ...entry }] of keyed(requested)) {
    const { time: then, ...same } = before.get(key) ?? {};
    if (!deepEqual(entry, same)) return false;
  }
  return true;
}
