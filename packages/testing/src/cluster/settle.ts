import { since } from "../history/story.ts";
import type { Write, WriteLog } from "../history/write-log.ts";

/** Keys that are written periodically even in an idle cluster. */
const heartbeats = /^\/registry\/(?:leases\/|masterleases\/|events\/|ranges\/)|\/(?:coxswain-barrier|compact_rev_key)$/;

/** The last write that is not a heartbeat. */
export function lastWork(writes: readonly Write[]): Write | undefined {
  return writes.findLast(({ key }) => !heartbeats.test(key));
}

/** Writers and their writes since a time, most frequent first: tells why a cluster does not settle. */
export function busiest(writes: WriteLog, sinceMs: number, startMs: number): string {
  const counts = new Map<string, { count: number; last: Write }>();
  for (const write of writes.all) {
    if (write.atMs < sinceMs || heartbeats.test(write.key)) continue;
    const id = `${write.key.replace(/^\/registry\//, "")} by ${write.by?.by ?? "the store itself"}`;
    counts.set(id, { count: (counts.get(id)?.count ?? 0) + 1, last: write });
  }
  const lines = [...counts].sort(([, a], [, b]) => b.count - a.count).slice(0, 10);
  return lines.map(([id, { count, last }]) => `  ${count} × ${id}, last at ${since(startMs, last.atMs)}`).join("\n");
}
