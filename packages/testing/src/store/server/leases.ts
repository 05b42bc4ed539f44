import type { MemoryEtcd } from "../memory-etcd.ts";

/** Leases of a served store: expire after their TTL unless they are renewed. */
export class ServedLeases {
  readonly #etcd: MemoryEtcd;
  readonly #open = new Map<bigint, { readonly seconds: number; readonly timer: NodeJS.Timeout }>();

  constructor(etcd: MemoryEtcd) {
    this.#etcd = etcd;
  }

  /** @returns the ID of a lease that expires after `seconds` unless it is kept alive */
  grant(seconds: number): bigint {
    const id = this.#etcd.grantLease();
    this.#start(id, seconds);
    return id;
  }

  /** @returns the TTL in seconds; 0 when the lease does not exist */
  renew(id: bigint): number {
    const { seconds = 0 } = this.#open.get(id) ?? {};
    if (seconds > 0) this.#start(id, seconds);
    return seconds;
  }

  /** Ends a lease early and deletes its keys. */
  end(id: bigint): void {
    clearTimeout(this.#open.get(id)?.timer);
    this.#open.delete(id);
    this.#etcd.expire(id);
  }

  close(): void {
    for (const { timer } of this.#open.values()) clearTimeout(timer);
    this.#open.clear();
  }

  #start(id: bigint, seconds: number): void {
    clearTimeout(this.#open.get(id)?.timer);
    this.#open.set(id, { seconds, timer: setTimeout(() => this.end(id), seconds * 1000) });
  }
}
