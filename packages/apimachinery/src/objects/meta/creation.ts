import { parseTime } from "./time.ts";
import type { ObjectMeta } from "./types.ts";

interface HasMeta {
  readonly metadata: ObjectMeta;
}

/** Creation time in ms since the Unix epoch; undefined when it is not set. */
export function createdAt({ metadata }: HasMeta): number | undefined {
  return metadata.creationTimestamp ? parseTime(metadata.creationTimestamp) : undefined;
}

/** Oldest first, then by name. Source: controller_utils.go PodsByCreationTimestamp, ReplicaSetsByCreationTimestamp */
export function byCreation({ metadata: a }: HasMeta, { metadata: b }: HasMeta): number {
  const [left, right] = [a.creationTimestamp ?? "", b.creationTimestamp ?? ""];
  if (left !== right) {
    // Timestamps in the server's format sort as text, which avoids parsing each one log(n) times in a sort.
    const difference =
      isPlain(left) && isPlain(right) ? (left < right ? -1 : 1) : (parseTime(left) ?? 0) - (parseTime(right) ?? 0);
    if (difference !== 0) return difference;
  }
  return (a.name ?? "") < (b.name ?? "") ? -1 : 1;
}

/** True for UTC times with whole seconds and a year of four digits. */
function isPlain(time: string): boolean {
  return time.length === 20 && time.endsWith("Z");
}
