import { parseTime } from "./time.ts";
import type { ObjectMeta } from "./types.ts";

interface HasMeta {
  readonly metadata: ObjectMeta;
}

/** When the object was made, in ms since the epoch; undefined when it does not say. */
export function createdAt({ metadata }: HasMeta): number | undefined {
  return metadata.creationTimestamp ? parseTime(metadata.creationTimestamp) : undefined;
}

/** Oldest first, by name within one second. Source: controller_utils.go PodsByCreationTimestamp, ReplicaSetsByCreationTimestamp */
export function byCreation({ metadata: a }: HasMeta, { metadata: b }: HasMeta): number {
  const [left, right] = [a.creationTimestamp ?? "", b.creationTimestamp ?? ""];
  if (left !== right) {
    // As the server writes them they sort as they are: a hundred thousand are not read twenty times each.
    const difference =
      isPlain(left) && isPlain(right) ? (left < right ? -1 : 1) : (parseTime(left) ?? 0) - (parseTime(right) ?? 0);
    if (difference !== 0) return difference;
  }
  return (a.name ?? "") < (b.name ?? "") ? -1 : 1;
}

/** In whole seconds of UTC, of a year with four digits. */
function isPlain(time: string): boolean {
  return time.length === 20 && time.endsWith("Z");
}
