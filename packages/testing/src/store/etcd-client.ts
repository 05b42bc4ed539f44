import type { EtcdClient, WatchHandlers } from "@coxswain/apiserver/storage/etcd/client";
import { EtcdError } from "@coxswain/apiserver/storage/etcd/errors";
import type { SimulatedProcess, TimeLine } from "../time/time-line.ts";
import type { MemoryEtcd } from "./memory-etcd.ts";
import { ServedWatch } from "./served-watch.ts";

/** Delays and faults of messages to and from etcd. */
export interface EtcdNetwork {
  /** Delay in one direction, in ms. */
  delayMs(): number;
  /** Additional delay of watch messages, by which this server's caches lag behind. */
  lagMs(): number;
  /** True when the response to an executed call is lost. */
  losesAnswer(): boolean;
  /** Called when etcd has executed a call, before the response is sent. */
  carriedOut?(): void;
}

interface SimulatedEtcdClient extends EtcdClient {
  /** Breaks all watch streams, as when an etcd member stops. */
  breakWatches(): void;
}

/** An API server's client of the in-memory etcd. */
export function newSimulatedEtcdClient(
  line: TimeLine,
  etcd: MemoryEtcd,
  network: EtcdNetwork,
  owner: SimulatedProcess,
): SimulatedEtcdClient {
  const streams = new Set<{ fail(): void }>();
  /** Executed by etcd after one delay, answered after another one. */
  const call = <T>(what: string, act: () => T, isWrite = false): Promise<T> =>
    new Promise((resolve, reject) => {
      if (!owner.alive) return;
      // A sent message arrives even when its sender has crashed meanwhile.
      line.after(network.delayMs(), `${owner.name}: etcd ${what}`, () => {
        let answer: () => void;
        try {
          const result = act();
          answer = () => resolve(result);
        } catch (err) {
          answer = () => reject(err);
        }
        network.carriedOut?.();
        if (isWrite && network.losesAnswer()) {
          line.note(`${owner.name}: the answer of etcd to ${what} is lost`);
          answer = () => reject(new EtcdError("unavailable", "the connection was lost"));
        }
        line.after(network.delayMs(), `${owner.name}: etcd answers ${what}`, () => {
          if (owner.alive) answer();
        });
      });
    });

  const status = { memberId: 1n, version: "3.5.13", dbSizeBytes: 0, errors: [] };
  return {
    servers: ["http://etcd"],
    range: (request) => call(`range ${request.key}`, () => etcd.range(request)),
    txn: (request) => call(`txn ${request.compare[0]?.key ?? ""}`, () => etcd.txn(request), true),
    put: (key, value) => call(`put ${key}`, () => etcd.put(key, value), true),
    compact: (revision) => call(`compact ${revision}`, () => etcd.compact(revision)),
    grantLease: (ttlSeconds) =>
      call("lease", () => {
        const lease = etcd.grantLease();
        line.after(ttlSeconds * 1000, `etcd: lease ${lease} ends`, () => etcd.expire(lease));
        return lease;
      }),
    status: () => call("status", () => status),
    members: () => call("members", () => [{ id: 1n, clientUrls: ["http://etcd"] }]),
    statusAt: () => call("status", () => status),
    openWatch: (_, handlers) => openWatch(line, etcd, network, owner, handlers, streams),
    breakWatches() {
      for (const stream of [...streams]) stream.fail();
    },
    close() {},
  };
}

function openWatch(
  line: TimeLine,
  etcd: MemoryEtcd,
  network: EtcdNetwork,
  owner: SimulatedProcess,
  handlers: WatchHandlers,
  streams: Set<{ fail(): void }>,
): ReturnType<EtcdClient["openWatch"]> {
  let isOpen = true;
  /** Messages of a stream do not overtake each other. */
  let last = 0;
  const inOrder = (delayMs: number, label: string, fire: () => void): void => {
    const at = Math.max(line.now() + delayMs, last + 1);
    last = at;
    line.after(at - line.now(), `${owner.name}: ${label}`, () => {
      if (isOpen && owner.alive) fire();
    });
  };
  const watch = new ServedWatch(etcd, {
    send(what, bytes) {
      inOrder(network.delayMs() + network.lagMs(), `etcd watch ${what}`, () => handlers.message(bytes));
    },
    broken: () => stream.fail(),
  });
  const close = (): void => {
    isOpen = false;
    watch.close();
    streams.delete(stream);
  };
  const stream = {
    fail(): void {
      close();
      line.after(network.delayMs(), `${owner.name}: etcd watch breaks`, () => {
        if (owner.alive) handlers.ended(new EtcdError("unavailable", "the stream was lost"));
      });
    },
  };
  streams.add(stream);
  return {
    server: 0,
    write(message) {
      line.after(network.delayMs(), `${owner.name}: etcd watch request`, () => {
        if (isOpen && owner.alive) watch.request(message);
      });
    },
    cancel: close,
  };
}
