import { EtcdError } from "@coxswain/apiserver/storage/etcd/errors";
import type {
  KeyValue,
  Operation,
  RangeRequest,
  RangeResponse,
  TxnRequest,
  TxnResponse,
  WatchEventMessage,
} from "@coxswain/apiserver/storage/etcd/wire";

/** One write, as watches are told of it: all that a transaction changed, under one revision. */
export interface Revision {
  readonly revision: number;
  readonly events: readonly WatchEventMessage[];
}

/**
 * etcd as the storage layer sees it, in memory and without waiting: revisions, transactions, reads of the past, compaction, leases, and the
 * changes since a revision. `etcd-client.ts` puts a network before it.
 */
export interface MemoryEtcd {
  readonly revision: number;
  readonly compacted: number;
  range(request: RangeRequest): RangeResponse;
  txn(request: TxnRequest): TxnResponse;
  put(key: string, value: Uint8Array): number;
  compact(revision: number): void;
  /** @returns its id; what is put under it is deleted by `expire`. */
  grantLease(): bigint;
  expire(lease: bigint): void;
  /** Whole revisions from `from` on. @throws EtcdError when they are compacted */
  since(from: number): readonly Revision[];
  /** Called with each revision as it is written. @returns stops that */
  onWrite(listener: (written: Revision) => void): () => void;
  /** Called when the store has become another one. */
  onRestore(listener: () => void): () => void;
  /** Goes back to the state after `revision`, as from a backup of that time: later revisions are given out again. */
  restore(revision: number): void;
  /** What is stored now, in the order of keys. */
  entries(prefix: string): readonly KeyValue[];
}

type Version = KeyValue & { readonly isDeleted: boolean };
const noBytes = Buffer.alloc(0);

/** @param initial what is in it from the start */
export function newMemoryEtcd(initial: readonly Pick<KeyValue, "key" | "value">[] = []): MemoryEtcd {
  /** All versions of each key that were not compacted, oldest first. */
  const versions = new Map<string, Version[]>();
  let sorted: string[] = [];
  let log: Revision[] = [];
  let revision = 1;
  let compacted = 0;
  let leases = 0n;
  const writers = new Set<(written: Revision) => void>();
  const restorers = new Set<() => void>();

  const at = (key: string, wanted = revision): KeyValue | undefined => {
    const found = versions.get(key)?.findLast(({ modRevision }) => modRevision <= wanted);
    return found === undefined || found.isDeleted ? undefined : found;
  };
  const place = (key: string): number => {
    let low = 0;
    for (let high = sorted.length; low < high; ) {
      const middle = (low + high) >> 1;
      if ((sorted[middle] as string) < key) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  const add = (version: Version): void => {
    const known = versions.get(version.key);
    if (known !== undefined) known.push(version);
    else {
      versions.set(version.key, [version]);
      sorted.splice(place(version.key), 0, version.key);
    }
  };

  const range = (request: RangeRequest): RangeResponse => {
    const wanted = request.revision || revision;
    if (wanted > revision) throw new EtcdError("future-revision", "etcdserver: mvcc: required revision is a future revision");
    if (wanted < compacted) throw new EtcdError("compacted", "etcdserver: mvcc: required revision has been compacted");
    const kvs: KeyValue[] = [];
    let count = 0;
    for (let i = place(request.key); i < sorted.length; i++) {
      const key = sorted[i] as string;
      if (request.end === undefined ? key !== request.key : key >= request.end) break;
      const found = at(key, wanted);
      if (found === undefined) continue;
      count++;
      if (request.countOnly || (request.limit && kvs.length >= request.limit)) continue;
      kvs.push(request.keysOnly ? { ...found, value: noBytes } : found);
    }
    return { revision, kvs, more: kvs.length < count && !request.countOnly, count };
  };
  const publish = (events: WatchEventMessage[]): void => {
    if (events.length === 0) return;
    const written = { revision, events };
    log.push(written);
    for (const writer of writers) writer(written);
  };
  const change = (operations: readonly Operation[]): { events: WatchEventMessage[]; ranges: (RangeResponse | undefined)[] } => {
    const next = revision + 1;
    const events: WatchEventMessage[] = [];
    const ranges = operations.map((operation) => {
      if (operation.type === "range") return range(operation.range);
      const { key } = operation;
      const prevKv = at(key);
      if (operation.type === "delete" && prevKv === undefined) return undefined;
      const isDeleted = operation.type === "delete";
      const version: Version = {
        key,
        createRevision: isDeleted ? 0 : (prevKv?.createRevision ?? next),
        modRevision: next,
        version: isDeleted ? 0 : (prevKv?.version ?? 0) + 1,
        value: isDeleted ? noBytes : Buffer.from(operation.value),
        lease: isDeleted ? 0n : (operation.lease ?? 0n),
        isDeleted,
      };
      add(version);
      events.push({ type: isDeleted ? "delete" : "put", kv: version, prevKv });
      return undefined;
    });
    if (events.length > 0) revision = next;
    return { events, ranges };
  };

  for (const { key, value } of initial) publish(change([{ type: "put", key, value }]).events);

  return {
    get revision() {
      return revision;
    },
    get compacted() {
      return compacted;
    },
    range,
    txn({ compare, success, failure }) {
      const succeeded = compare.every(({ key, target, value }) => (at(key)?.[target] ?? 0) === value);
      const { events, ranges } = change(succeeded ? success : failure);
      publish(events);
      return { revision, succeeded, ranges };
    },
    put(key, value) {
      publish(change([{ type: "put", key, value }]).events);
      return revision;
    },
    compact(upTo) {
      if (upTo > revision) throw new EtcdError("future-revision", "etcdserver: mvcc: required revision is a future revision");
      if (upTo <= compacted) throw new EtcdError("compacted", "etcdserver: mvcc: required revision has been compacted");
      compacted = upTo;
      log = log.filter((written) => written.revision >= upTo);
      for (const [key, all] of versions) {
        const last = all.findLastIndex(({ modRevision }) => modRevision <= upTo);
        if (last > 0) all.splice(0, last);
        if (all[0]?.isDeleted && all[0].modRevision <= upTo) all.shift();
        if (all.length === 0) versions.delete(key);
      }
      sorted = sorted.filter((key) => versions.has(key));
    },
    grantLease: () => ++leases,
    expire(lease) {
      const keys = sorted.filter((key) => at(key)?.lease === lease);
      publish(change(keys.map((key) => ({ type: "delete", key }))).events);
    },
    since(from) {
      if (from < compacted) throw new EtcdError("compacted", "etcdserver: mvcc: required revision has been compacted");
      return log.filter((written) => written.revision >= from);
    },
    onWrite(listener) {
      writers.add(listener);
      return () => writers.delete(listener);
    },
    onRestore(listener) {
      restorers.add(listener);
      return () => restorers.delete(listener);
    },
    restore(to) {
      for (const [key, all] of versions) {
        while ((all.at(-1)?.modRevision ?? 0) > to) all.pop();
        if (all.length === 0) versions.delete(key);
      }
      sorted = sorted.filter((key) => versions.has(key));
      log = log.filter((written) => written.revision <= to);
      revision = to;
      for (const listener of restorers) listener();
    },
    entries: (prefix) => sorted.filter((key) => key.startsWith(prefix)).flatMap((key) => at(key) ?? []),
  };
}
