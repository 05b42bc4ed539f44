/** Problems by severity. Pods of one owner that fail alike are one entry; owners are omitted when their pods show the cause. */
import type { Cluster } from "./cluster.ts";
import { type Health, isPod, type Resource, type Row } from "./row.ts";

export interface Trouble {
  /** The object, or the first of several pods. */
  readonly row: Row;
  /** Number of further pods with the same problem. */
  readonly more: number;
}

/** A transition of this length is no problem yet. */
const patienceMs = 60_000;

const order: readonly Resource[] = [
  "nodes",
  "pods",
  "deployments.apps",
  "statefulsets.apps",
  "daemonsets.apps",
  "jobs.batch",
  "replicasets.apps",
  "persistentvolumeclaims",
  "horizontalpodautoscalers.autoscaling",
  "namespaces",
];

const isTroubled = ({ health, sinceMs }: { readonly health: Health; readonly sinceMs: number }, nowMs: number): boolean =>
  health === "bad" || (health === "moving" && sinceMs > 0 && nowMs - sinceMs > patienceMs);

/**
 * Unhealthy objects, and those that are in transition for too long. Pods of one owner with the same status are one entry;
 * owners of an unhealthy Pod have none.
 */
export function troublesOf(cluster: Cluster, nowMs: number): Trouble[] {
  const groups = new Map<string, { row: Row; more: number }>();
  const reported = new Set<string>();
  for (const resource of order) {
    for (const row of cluster.all(resource).values()) {
      if (!isTroubled(row, nowMs) || reported.has(row.uid)) continue;
      const key = isPod(row) && row.owner !== "" ? `${row.owner} ${row.status}` : row.uid;
      const known = groups.get(key);
      if (known !== undefined) known.more++;
      else {
        groups.set(key, { row, more: 0 });
        for (const { uid } of cluster.owners(row)) reported.add(uid);
      }
    }
  }
  return [...groups.values()];
}
