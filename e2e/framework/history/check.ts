import { checkOrder } from "./check-order.ts";
import { checkReads } from "./check-reads.ts";
import { checkWatches } from "./check-watches.ts";
import { checkWrites } from "./check-writes.ts";
import type { Recording, Version } from "./records.ts";
import { newTimeline } from "./timeline.ts";

/**
 * Compares what clients observed of one resource with etcd's history.
 * @param versions all changes of the resource in revision order, read from etcd directly
 * @returns descriptions of violations; empty when there are none
 */
export function check(recording: Recording, versions: readonly Version[]): string[] {
  const timeline = newTimeline(versions);
  return [
    ...checkHistory(versions),
    ...checkWrites(recording.writes, timeline),
    ...checkReads(recording.reads, timeline),
    ...checkOrder(recording, timeline),
    ...checkWatches(recording.watches, timeline),
  ];
}

/** Checks the history itself for completeness: versions of a key are consecutive, revisions increase. */
function checkHistory(versions: readonly Version[]): string[] {
  const broken: string[] = [];
  const last = new Map<string, Version>();
  for (const version of versions) {
    const before = last.get(version.key);
    if (before !== undefined && before.revision >= version.revision) {
      broken.push(`etcd's history of ${version.key} goes from revision ${before.revision} to ${version.revision}`);
    }
    if (version.object !== undefined && version.version !== (before?.version ?? 0) + 1) {
      broken.push(`etcd's history of ${version.key} at ${version.revision} misses something before it`);
    }
    last.set(version.key, version);
  }
  return broken;
}
