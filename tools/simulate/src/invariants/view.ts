import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { KeyValue } from "@coxswain/apiserver/storage/etcd/wire";
import type { MemoryEtcd } from "@coxswain/testing/store/memory-etcd";

// biome-ignore lint/suspicious/noExplicitAny: conditions look into objects of every kind.
export type Stored = KubeObject & { spec?: any; status?: any };

/** The contents of etcd, read directly and not through caches or API servers. */
export interface View {
  /** @param folder as in etcd keys: `pods`, `minions` for nodes */
  all(folder: string): Stored[];
  get(folder: string, key: string): Stored | undefined;
}

const decoded = new WeakMap<Uint8Array, Stored>();

/** The result is read-only. */
export function objectOf({ value, modRevision }: KeyValue): Stored {
  const object = decoded.getOrInsertComputed(value, () => JSON.parse(value.toString()) as Stored); // cast: stored by the API server as JSON
  object.metadata.resourceVersion = String(modRevision);
  return object;
}

export const viewOf = (etcd: MemoryEtcd): View => ({
  all: (folder) => etcd.entries(`/registry/${folder}/`).map(objectOf),
  get(folder, key) {
    const [found] = etcd.range({ key: `/registry/${folder}/${key}` }).kvs;
    return found === undefined ? undefined : objectOf(found);
  },
});

export const controllerOf = ({ metadata }: KubeObject): string | undefined =>
  metadata.ownerReferences?.find(({ controller }) => controller)?.uid;

export const isActive = ({ metadata, status }: Stored): boolean =>
  !metadata.deletionTimestamp && status?.phase !== "Succeeded" && status?.phase !== "Failed";

/** Deleted, and still running. */
export const isEnding = ({ metadata, status }: Stored): boolean =>
  Boolean(metadata.deletionTimestamp) && status?.phase !== "Succeeded" && status?.phase !== "Failed";

export const isReady = (pod: Stored): boolean =>
  isActive(pod) &&
  (pod.status?.conditions ?? []).some((c: { type: string; status: string }) => c.type === "Ready" && c.status === "True");
