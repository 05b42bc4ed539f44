import type { Clock, Timer } from "@coxswain/apimachinery/process/clock/clock";
import type { EtcdClient, WatchHandlers, WatchStream } from "@coxswain/apiserver/storage/etcd/client";
import { EtcdError } from "@coxswain/apiserver/storage/etcd/errors";
import type { MemoryEtcd } from "./memory-etcd.ts";
import { ServedWatch } from "./served-watch.ts";

/**
 * An etcd client for a store in the same process: calls complete immediately, watch events arrive in write order.
 * @param clock for lease expiry
 */
export class DirectEtcdClient implements EtcdClient {
  readonly servers = ["memory"];
  /** Delay of watch messages in ms; 0: none. */
  lagMs = 0;
  readonly #etcd: MemoryEtcd;
  readonly #clock: Clock;
  readonly #streams = new Set<DirectWatch>();
  readonly #leases = new Set<Timer>();

  constructor(etcd: MemoryEtcd, clock: Clock) {
    this.#etcd = etcd;
    this.#clock = clock;
  }

  async range(request: Parameters<EtcdClient["range"]>[0]): ReturnType<EtcdClient["range"]> {
    return this.#etcd.range(request);
  }

  async txn(request: Parameters<EtcdClient["txn"]>[0]): ReturnType<EtcdClient["txn"]> {
    return this.#etcd.txn(request);
  }

  async put(key: string, value: Uint8Array): Promise<number> {
    return this.#etcd.put(key, value);
  }

  async compact(revision: number): Promise<void> {
    this.#etcd.compact(revision);
  }

  async grantLease(ttlSeconds: number): Promise<bigint> {
    const lease = this.#etcd.grantLease();
    const timer = this.#clock.after(ttlSeconds * 1000, () => {
      this.#leases.delete(timer);
      this.#etcd.expire(lease);
    });
    this.#leases.add(timer);
    return lease;
  }

  async status(): ReturnType<EtcdClient["status"]> {
    return { memberId: 1n, version: "3.5.13", dbSizeBytes: 0, errors: [] };
  }

  async members(): ReturnType<EtcdClient["members"]> {
    return [{ id: 1n, clientUrls: [...this.servers] }];
  }

  statusAt(): ReturnType<EtcdClient["statusAt"]> {
    return this.status();
  }

  openWatch(_failed: number | undefined, handlers: WatchHandlers): WatchStream {
    const stream = new DirectWatch(
      this.#etcd,
      this.#clock,
      handlers,
      () => this.lagMs,
      () => this.#streams.delete(stream),
    );
    this.#streams.add(stream);
    return stream;
  }

  /** Breaks all watch streams, as when an etcd member stops. */
  breakWatches(): void {
    for (const stream of [...this.#streams]) stream.fail();
  }

  close(): void {
    for (const stream of [...this.#streams]) stream.cancel();
    for (const timer of this.#leases) timer.cancel();
    this.#leases.clear();
  }
}

class DirectWatch implements WatchStream {
  readonly server = 0;
  readonly #watch: ServedWatch;
  readonly #handlers: WatchHandlers;
  readonly #clock: Clock;
  readonly #lagMs: () => number;
  readonly #closed: () => void;
  #isOpen = true;
  /** Queued messages, oldest first. */
  #queue: Buffer[] = [];

  constructor(etcd: MemoryEtcd, clock: Clock, handlers: WatchHandlers, lagMs: () => number, closed: () => void) {
    this.#handlers = handlers;
    this.#clock = clock;
    this.#lagMs = lagMs;
    this.#closed = closed;
    this.#watch = new ServedWatch(etcd, {
      send: (_, message) => this.#enqueue(message),
      broken: () => this.fail(),
    });
  }

  write(message: Buffer): void {
    queueMicrotask(() => {
      if (this.#isOpen) this.#watch.request(message);
    });
  }

  cancel(): void {
    this.#isOpen = false;
    this.#queue = [];
    this.#watch.close();
    this.#closed();
  }

  fail(): void {
    if (!this.#isOpen) return;
    this.cancel();
    queueMicrotask(() => this.#handlers.ended(new EtcdError("unavailable", "the stream was lost")));
  }

  #enqueue(message: Buffer): void {
    if (this.#queue.push(message) > 1) return;
    const lagMs = this.#lagMs();
    if (lagMs > 0) this.#clock.after(lagMs, () => this.#flush());
    else queueMicrotask(() => this.#flush());
  }

  #flush(): void {
    const messages = this.#queue;
    this.#queue = [];
    for (const message of messages) if (this.#isOpen) this.#handlers.message(message);
  }
}
