import { randomUUID } from "node:crypto";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { Connect } from "@coxswain/apimachinery/transport/connect";
import type { GrpcCalls } from "@coxswain/apimachinery/transport/grpc/calls";
import type { PastChange } from "../watch/change-source.ts";
import { WatchMultiplexer } from "../watch/multiplexer.ts";
import type { EtcdIdentity } from "./etcd/channel.ts";
import { type EtcdClient, newEtcdClient } from "./etcd/client.ts";
import { startCompactor } from "./etcd/compactor.ts";
import { statusErrorOf } from "./etcd/errors.ts";
import { type Leases, newLeases } from "./etcd/leases.ts";
import { newProgressTrust } from "./etcd/progress-trust.ts";
import { type EtcdWatch, startEtcdWatch, type Witness } from "./etcd/watcher.ts";
import { barrierKey } from "./key-layout.ts";
import type { StorageMetrics } from "./metrics.ts";

export interface EtcdOptions {
  servers: readonly string[];
  /** --etcd-servers-overrides: `events` of the core group, and what shares its objects, is `{ group: "", resource: "events" }`. */
  overrides?: readonly { group: string; resource: string; servers: readonly string[] }[];
  /** Key prefix: `/registry`. */
  prefix?: string;
  /** PEM. */
  ca?: Buffer | undefined;
  cert?: Buffer | undefined;
  key?: Buffer | undefined;
  /** The current client certificate, used instead of `cert` and `key` for each new connection. */
  identity?: (() => EtcdIdentity | undefined) | undefined;
  /** Interval between compactions of etcd; 0: never. */
  compactionIntervalMs?: number;
  healthTimeoutMs?: number;
  /** Metrics of calls. */
  calls?: GrpcCalls | undefined;
  /** Dials etcd; undefined: directly. */
  connect?: Connect | undefined;
  /** --lease-reuse-duration-seconds */
  leaseReuseSeconds?: number;
  /** Instead of a connection to `servers`: for a store in the same process. */
  client?: (() => EtcdClient) | undefined;
  /** Wraps each cluster's client; for tests that fail at a chosen point of a write. */
  around?: ((client: EtcdClient) => EtcdClient) | undefined;
}

interface ClusterOptions {
  readonly etcd: EtcdOptions;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics?: StorageMetrics;
}

/** The connections to one etcd cluster, shared by all resources that it stores. */
export interface Cluster {
  readonly client: EtcdClient;
  readonly leases: Leases;
  readonly multiplexer: WatchMultiplexer;
  /** The revision up to which etcd was compacted, as far as this server knows; older revisions cannot be read. */
  compacted(): number;
  stop(): void;
}

/** Connects to the cluster of `servers`; its watch begins with `multiplexer.start`. @param prefix `/registry` */
export function openCluster(servers: readonly string[], prefix: string, options: ClusterOptions): Cluster {
  const { clock, log, metrics } = options;
  const { ca, cert, key, identity, calls, connect, compactionIntervalMs, leaseReuseSeconds } = options.etcd;
  const { around = (inner) => inner } = options.etcd;
  const client = around(options.etcd.client?.() ?? newEtcdClient({ servers, ca, cert, key, identity, calls, connect }));
  const below = `${prefix}/`;
  const trust = newProgressTrust({ client, clock, log });
  let lastBarrier: Witness | undefined;
  const multiplexer = new WatchMultiplexer({
    clock,
    log,
    source: {
      currentRevision: async () => (await translated(client.range({ key: below + barrierKey, keysOnly: true }))).revision,
      past: (after, upTo) => readPast(client, below, after, upTo, options),
      async writeBarrier() {
        // A unique value: a restored etcd may have another barrier at the same revision.
        const value = Buffer.from(randomUUID());
        const revision = await translated(client.put(below + barrierKey, value));
        lastBarrier = { key: below + barrierKey, revision, value };
        return revision;
      },
      watch: (after, { onChanges, onProgress, onLost, onOtherHistory }) =>
        startEtcdWatch({
          client,
          prefix: below,
          after,
          prevKv: false,
          progress: { trust, onProgress, onUntrue: onLost },
          clock,
          log,
          onEvents: (events, revision) =>
            onChanges(
              events.map((event) => ({
                key: event.kv.key.slice(below.length),
                value: event.type === "put" ? event.kv.value : undefined,
                revision: event.kv.modRevision,
              })),
              revision,
            ),
          onCompacted: onLost,
          onOtherHistory,
          witness: lastBarrier?.revision === after ? lastBarrier : undefined,
        }),
    },
  });
  const compactor = startCompactor({ client, intervalMs: compactionIntervalMs ?? 5 * 60_000, clock, log });
  return {
    client,
    leases: newLeases({ client, clock, reuseSeconds: leaseReuseSeconds, metrics }),
    multiplexer,
    compacted: () => compactor.compacted,
    stop() {
      compactor.stop();
      multiplexer.stop();
      trust.stop();
      client.close();
    },
  };
}

const pastTimeoutMs = 3_000;

/**
 * Reads all changes between two revisions with a watch. `upTo` is the revision of a write below the prefix, whose event ends it.
 */
function readPast(
  client: EtcdClient,
  prefix: string,
  after: number,
  upTo: number,
  { clock, log }: ClusterOptions,
): Promise<{ after: number; changes: PastChange[] }> {
  return new Promise((resolve, reject) => {
    const changes: PastChange[] = [];
    let watch: EtcdWatch | undefined;
    const timer = clock.after(pastTimeoutMs, () => {
      watch?.stop();
      reject(new Error(`etcd did not send the changes of ${prefix} up to revision ${upTo} within ${pastTimeoutMs / 1000} s`));
    });
    const done = (from: number): void => {
      watch?.stop();
      timer.cancel();
      resolve({ after: from, changes });
    };
    const start = (after: number): void => {
      let from = after;
      if (from >= upTo) {
        done(upTo);
        return;
      }
      watch = startEtcdWatch({
        client,
        prefix,
        after: from,
        prevKv: true,
        clock,
        log,
        onEvents(events, revision) {
          for (const { type, kv, prevKv } of events) {
            if (kv.modRevision > upTo) break;
            if (prevKv === undefined && kv.createRevision !== kv.modRevision) {
              // The previous state was compacted meanwhile: only the changes after this one can be used.
              changes.length = 0;
              from = kv.modRevision;
              continue;
            }
            changes.push({
              key: kv.key.slice(prefix.length),
              value: type === "put" ? kv.value : undefined,
              revision: kv.modRevision,
              previous: prevKv === undefined ? undefined : { value: prevKv.value, revision: prevKv.modRevision },
            });
          }
          if (revision >= upTo) done(from);
        },
        onCompacted: (compactRevision) => start(compactRevision),
      });
    };
    start(after);
  });
}

async function translated<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (err) {
    throw statusErrorOf(err);
  }
}
