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

/** One write as sent to watches: all changes of a transaction, under one revision. */
export interface Revision {
  readonly revision: number;
  readonly events: readonly WatchEventMessage[];
}

type Version = KeyValue & { readonly isDeleted: boolean };
const noBytes = Buffer.alloc(0);

/**
 * An in-memory, synchronous implementation of what the storage layer uses of etcd: revisions, transactions, reads at a revision, compaction,
 * leases, and the changes since a revision. `etcd-client.ts` adds a simulated network.
 * @param initial initial keys
 */
export class MemoryEtcd {
  /** All versions of each key since the last compaction, oldest first. */
  readonly #versions = new Map<string, Version[]>();
  #sorted: string[] = [];
  #log: Revision[] = [];
  #revision = 1;
  #compacted = 0;
  #leases = 0n;
  readonly #writers = new Set<(written: Revision) => void>();
  readonly #restorers = new Set<() => void>();

  constructor(initial: readonly Pick<KeyValue, "key" | "value">[] = []) {
    for (const { key, value } of initial) this.#publish(this.#change([{ type: "put", key, value }]).events);
  }

  get revision(): number {
    return this.#revision;
  }

  get compacted(): number {
    return this.#compacted;
  }

  /** Reads at `request.revision`, or at the current one. @throws EtcdError when that revision is compacted or in the future */
  range(request: RangeRequest): RangeResponse {
    const wanted = request.revision || this.#revision;
    if (wanted > this.#revision)
      throw new EtcdError("future-revision", "etcdserver: mvcc: required revision is a future revision");
    if (wanted < this.#compacted) throw new EtcdError("compacted", "etcdserver: mvcc: required revision has been compacted");
    const kvs: KeyValue[] = [];
    let count = 0;
    for (let i = this.#place(request.key); i < this.#sorted.length; i++) {
      const key = this.#sorted[i] as string;
      if (request.end === undefined ? key !== request.key : key >= request.end) break;
      const found = this.#at(key, wanted);
      if (found === undefined) continue;
      count++;
      if (request.countOnly || (request.limit && kvs.length >= request.limit)) continue;
      kvs.push(request.keysOnly ? { ...found, value: noBytes } : found);
    }
    return { revision: this.#revision, kvs, more: kvs.length < count && !request.countOnly, count };
  }

  /** Runs one branch of a transaction under a single new revision, or under the current one when it only reads. */
  txn({ compare, success, failure }: TxnRequest): TxnResponse {
    const succeeded = compare.every(({ key, target, value }) => (this.#at(key)?.[target] ?? 0) === value);
    const { events, ranges } = this.#change(succeeded ? success : failure);
    this.#publish(events);
    return { revision: this.#revision, succeeded, ranges };
  }

  /** @returns the new revision */
  put(key: string, value: Uint8Array): number {
    this.#publish(this.#change([{ type: "put", key, value }]).events);
    return this.#revision;
  }

  /**
   * Drops all versions that reads from revision `upTo` on do not need. @throws EtcdError when it is compacted already or in the
   * future
   */
  compact(upTo: number): void {
    if (upTo > this.#revision) throw new EtcdError("future-revision", "etcdserver: mvcc: required revision is a future revision");
    if (upTo <= this.#compacted) throw new EtcdError("compacted", "etcdserver: mvcc: required revision has been compacted");
    this.#compacted = upTo;
    this.#log = this.#log.filter((written) => written.revision >= upTo);
    for (const [key, all] of this.#versions) {
      const last = all.findLastIndex(({ modRevision }) => modRevision <= upTo);
      if (last > 0) all.splice(0, last);
      if (all[0]?.isDeleted && all[0].modRevision <= upTo) all.shift();
      if (all.length === 0) this.#versions.delete(key);
    }
    this.#sorted = this.#sorted.filter((key) => this.#versions.has(key));
  }

  /** @returns the lease's ID; `expire` deletes the keys that are attached to it. */
  grantLease(): bigint {
    return ++this.#leases;
  }

  /** Deletes the keys of a lease under one revision. */
  expire(lease: bigint): void {
    const keys = this.#sorted.filter((key) => this.#at(key)?.lease === lease);
    this.#publish(this.#change(keys.map((key) => ({ type: "delete", key }))).events);
  }

  /** Changes from revision `from` on. @throws EtcdError when it is compacted */
  since(from: number): readonly Revision[] {
    if (from < this.#compacted) throw new EtcdError("compacted", "etcdserver: mvcc: required revision has been compacted");
    return this.#log.filter((written) => written.revision >= from);
  }

  /** Called with each revision as it is written. @returns a function that removes the listener */
  onWrite(listener: (written: Revision) => void): () => void {
    this.#writers.add(listener);
    return () => this.#writers.delete(listener);
  }

  /** Called when the store was restored. @returns a function that removes the listener */
  onRestore(listener: () => void): () => void {
    this.#restorers.add(listener);
    return () => this.#restorers.delete(listener);
  }

  /** Restores the state after revision `to`, as from a backup: later revision numbers are used again. */
  restore(to: number): void {
    for (const [key, all] of this.#versions) {
      while ((all.at(-1)?.modRevision ?? 0) > to) all.pop();
      if (all.length === 0) this.#versions.delete(key);
    }
    this.#sorted = this.#sorted.filter((key) => this.#versions.has(key));
    this.#log = this.#log.filter((written) => written.revision <= to);
    this.#revision = to;
    for (const listener of this.#restorers) listener();
  }

  /** An independent copy of the current keys, without earlier revisions and without watchers. */
  fork(): MemoryEtcd {
    const copy = new MemoryEtcd();
    // Versions and revisions are immutable, so only the lists are copied.
    for (const [key, all] of this.#versions) copy.#versions.set(key, [...all]);
    copy.#sorted = [...this.#sorted];
    copy.#log = [...this.#log];
    copy.#revision = this.#revision;
    copy.#compacted = this.#compacted;
    copy.#leases = this.#leases;
    // The copy has no watchers that could resume, so it needs no earlier revisions.
    if (copy.#revision > copy.#compacted) copy.compact(copy.#revision);
    return copy;
  }

  /** Current keys in key order. */
  entries(prefix: string): readonly KeyValue[] {
    return this.#sorted.filter((key) => key.startsWith(prefix)).flatMap((key) => this.#at(key) ?? []);
  }

  #at(key: string, wanted = this.#revision): KeyValue | undefined {
    const found = this.#versions.get(key)?.findLast(({ modRevision }) => modRevision <= wanted);
    return found === undefined || found.isDeleted ? undefined : found;
  }

  #place(key: string): number {
    let low = 0;
    for (let high = this.#sorted.length; low < high; ) {
      const middle = (low + high) >> 1;
      if ((this.#sorted[middle] as string) < key) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #add(version: Version): void {
    const known = this.#versions.get(version.key);
    if (known !== undefined) known.push(version);
    else {
      this.#versions.set(version.key, [version]);
      this.#sorted.splice(this.#place(version.key), 0, version.key);
    }
  }

  #publish(events: WatchEventMessage[]): void {
    if (events.length === 0) return;
    const written = { revision: this.#revision, events };
    this.#log.push(written);
    for (const writer of this.#writers) writer(written);
  }

  #change(operations: readonly Operation[]): { events: WatchEventMessage[]; ranges: (RangeResponse | undefined)[] } {
    const next = this.#revision + 1;
    const events: WatchEventMessage[] = [];
    const ranges = operations.map((operation) => {
      if (operation.type === "range") return this.range(operation.range);
      const { key } = operation;
      const prevKv = this.#at(key);
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
      this.#add(version);
      events.push({ type: isDeleted ? "delete" : "put", kv: version, prevKv });
      return undefined;
    });
    if (events.length > 0) this.#revision = next;
    return { events, ranges };
  }
}
