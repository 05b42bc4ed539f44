import type { KeyValue } from "@coxswain/apiserver/storage/etcd/wire";
import type { Requester } from "../faults/faults.ts";
import type { MemoryEtcd } from "../store/memory-etcd.ts";

/** One version of an object, with the time and author of its write. */
export interface Write {
  readonly revision: number;
  /** ms since the epoch on the cluster's clock. */
  readonly atMs: number;
  /** `/registry/pods/default/web-0` */
  readonly key: string;
  readonly type: "put" | "delete";
  readonly by: Requester | undefined;
  /** undefined for a deletion. */
  readonly value: Buffer | undefined;
  readonly before: Buffer | undefined;
}

/** Maximum number of writes kept; older ones are dropped. */
const mostWrites = 20_000;

/** The writes to an in-memory store, with their authors. */
export class WriteLog {
  #writes: Write[] = [];
  readonly #now: () => number;
  readonly #requester: () => Requester | undefined;

  /** @param requester returns the author of the current write */
  constructor(etcd: MemoryEtcd, now: () => number, requester: () => Requester | undefined, earlier: readonly Write[] = []) {
    this.#now = now;
    this.#requester = requester;
    this.#writes = [...earlier];
    etcd.onWrite(({ revision, events }) => {
      for (const { type, kv, prevKv } of events) this.#add(revision, type, kv, prevKv);
    });
  }

  get all(): readonly Write[] {
    return this.#writes;
  }

  /** Oldest first. */
  of(key: string): readonly Write[] {
    return this.#writes.filter((write) => write.key === key);
  }

  #add(revision: number, type: "put" | "delete", kv: KeyValue, prevKv: KeyValue | undefined): void {
    const value = type === "put" ? kv.value : undefined;
    const write = { revision, atMs: this.#now(), key: kv.key, type, by: this.#requester(), value, before: prevKv?.value };
    if (this.#writes.push(write) > mostWrites) this.#writes = this.#writes.slice(mostWrites / 2);
  }
}
