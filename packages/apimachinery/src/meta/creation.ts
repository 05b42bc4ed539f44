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
export function byCreation(a: HasMeta, b: HasMeta): number {
  return (createdAt(a) ?? 0) - (createdAt(b) ?? 0) || ((a.metadata.name ?? "") < (b.metadata.name ?? "") ? -1 : 1);
}
