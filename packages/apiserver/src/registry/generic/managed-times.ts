/** The times of field ownership in objects that a write leaves as they were. */
import { deepEqual } from "@coxswain/apimachinery/meta/deep-equal";
import type { KubeObject, ManagedFieldsEntry } from "@coxswain/apimachinery/meta/types";

/**
 * A configuration that is applied again may claim nothing new and still get a new time, when it names a field that the
 * server decides (`creationTimestamp: null`, which every generator of manifests writes). Such an application is no change,
 * and no event for those who watch: the stored entries stay.
 * Source: k8s.io/apiserver pkg/endpoints/handlers/fieldmanager/equality.go (1.24)
 * @param next after the strategy, which has put back what clients cannot set; changed in place
 */
export function keepTimesWhenUnchanged(next: KubeObject, current: KubeObject): void {
  const asked = next.metadata.managedFields;
  const stored = current.metadata.managedFields;
  if (asked === undefined || stored === undefined || asked === stored || !onlyTimesDiffer(asked, stored)) return;
  next.metadata.managedFields = stored;
  if (!deepEqual(next, current)) next.metadata.managedFields = asked;
}

function onlyTimesDiffer(asked: readonly ManagedFieldsEntry[], stored: readonly ManagedFieldsEntry[]): boolean {
  if (asked.length !== stored.length) return false;
  // First what is cheap, and differs in most writes that change something.
  if (asked.every((entry, at) => entry.time === stored[at]?.time)) return false;
  const keyed = (entries: readonly ManagedFieldsEntry[]): Map<string, ManagedFieldsEntry> =>
    new Map(
      entries.map((entry) => [JSON.stringify([entry.manager, entry.operation, entry.apiVersion, entry.subresource]), entry]),
    );
  // Entries are sorted by time: another time may be another place.
  const before = keyed(stored);
  for (const [key, { time, ...entry }] of keyed(asked)) {
    const { time: then, ...same } = before.get(key) ?? {};
    if (!deepEqual(entry, same)) return false;
  }
  return true;
}
