import { randomUUID } from "node:crypto";
import type { Connect } from "@coxswain/apimachinery/client/connect";
import type { Clock } from "@coxswain/apimachinery/clock/clock";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import type { GroupResource } from "@coxswain/apimachinery/meta/group-version";
import { newBookmarkClock } from "../watch/bookmarks.ts";
import { type ChangeFeed, newChangeFeed, type PastChange } from "../watch/feed.ts";
import { newWatchCache, type WatchCache } from "../watch/watch-cache.ts";
import { type EtcdClient, newEtcdClient } from "./etcd/client.ts";
import { startCompactor } from "./etcd/compactor.ts";
import { statusErrorOf } from "./etcd/errors.ts";
import type { EtcdIdentity } from "./etcd/grpc.ts";
import type { GrpcCalls } from "./etcd/grpc-calls.ts";
import { etcdWarning, newEtcdHealth } from "./etcd/health.ts";
import { type Leases, newLeases } from "./etcd/leases.ts";
import { newProgressTrust } from "./etcd/progress-trust.ts";
import { newEtcdStore } from "./etcd/store.ts";
import type { Transformer } from "./etcd/transformer.ts";
import { type EtcdWatch, startEtcdWatch, type Witness } from "./etcd/watcher.ts";
import { barrierKey, cleanPrefix, isBuiltInGroup, storageFolder } from "./key-layout.ts";
import { goTypeName, type StorageMetrics } from "./metrics.ts";
import { newObjectCodec, type StoredResource } from "./object-codec.ts";
import type { Storage } from "./storage.ts";

/**
 * Opens the storage layer: a client, a watch multiplexer and a compactor for each etcd cluster, a store and
 * a cache for each resource.
 */
export interface StorageSet {
  /** The storage of one resource, created on first use; also for resources added later (custom resources). */
  for(resource: StoredResource): Storage;
  /** Closes the storage of a resource that is no longer served. */
  release(resource: GroupResource): void;
  /** Whether all caches are filled. */
  ready(): boolean;
  /** Resolves when the caches opened before the first call are filled and have loaded the recent history. */
  whenReady(): Promise<void>;
  /** The `etcd` health check; rejects with the reason. */
  health(): Promise<void>;
  /** A problem that does not fail the health check but is shown with it. */
  warning(): Promise<string | undefined>;
  stop(): void;
}

export interface StorageOptions {
  etcd: EtcdOptions;
  /** Resources whose caches are filled at startup; `for` accepts others too. */
  resources?: readonly StoredResource[];
  /** --watch-cache */
  watchCache?: boolean;
  /** --default-watch-cache-size=0: only the resources in `watchCacheSizes` have a cache. */
  cachedWhenNamed?: boolean;
  /**
   * --watch-cache-sizes, by `resource` or `resource.group`. 0 disables the cache; other values are ignored, since the size
   * adapts to use. When not given, events have no cache.
   */
  watchCacheSizes?: ReadonlyMap<string, number>;
  /** --storage-media-type */
  mediaType?: string;
  transformerFor?: (resource: GroupResource) => Transformer | undefined;
  clock: Clock;
  log: Logger;
  metrics?: StorageMetrics;
  /** How long a read waits for a revision that has not arrived; default 3 s, as upstream. */
  readPatienceMs?: number;
  /** --etcd-count-metric-poll-period; 0 or less: never. */
  countPollMs?: number;
  /** --etcd-db-metric-poll-interval; 0 or less: never. */
  databaseSizePollMs?: number;
}

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
  /** 0: never. */
  compactionIntervalMs?: number;
  healthTimeoutMs?: number;
  /** Metrics of calls. */
  calls?: GrpcCalls | undefined;
  /** Dials etcd; undefined: directly. */
  connect?: Connect | undefined;
  /** --lease-reuse-duration-seconds */
  leaseReuseSeconds?: number;
  /** Wraps each cluster's client; for tests that fail at a chosen point of a write. */
  around?: ((client: EtcdClient) => EtcdClient) | undefined;
}

/** One etcd cluster. */
interface Cluster {
  client: EtcdClient;
  leases: Leases;
  feed: ChangeFeed;
  stop(): void;
}

const defaultMediaType = "application/vnd.kubernetes.protobuf";
const allButEvents: ReadonlyMap<string, number> = new Map(["events", "events.events.k8s.io"].map((name) => [name, 0]));

/** Starts the watches and resolves when they run. @throws EtcdError when etcd cannot be reached */
export async function openStorage(options: StorageOptions): Promise<StorageSet> {
  const { clock, log, metrics } = options;
  const prefix = cleanPrefix(options.etcd.prefix ?? "/registry");
  const clusters = new Map<string, Cluster>();
  const opened = new Map<string, { storage: Storage; cache: WatchCache | undefined; name: string }>();
  const bookmarks = newBookmarkClock(clock);
  const sizes = options.watchCacheSizes ?? allButEvents;

  /** `*` matches all resources of a group; of duplicate overrides the last one wins. */
  function serversOf({ group, resource }: GroupResource): readonly string[] {
    const among = (name: string): readonly string[] | undefined =>
      options.etcd.overrides?.findLast((o) => o.group === group && o.resource === name)?.servers;
    return among(resource) ?? among("*") ?? options.etcd.servers;
  }

  const nameOf = (resource: GroupResource): string =>
    resource.group === "" ? resource.resource : `${resource.resource}.${resource.group}`;

  function clusterOf(servers: readonly string[]): Cluster {
    const key = servers.join(",");
    let cluster = clusters.get(key);
    if (cluster === undefined) {
      cluster = openCluster(servers, prefix, options);
      clusters.set(key, cluster);
    }
    return cluster;
  }

  function open(resource: StoredResource): { storage: Storage; cache: WatchCache | undefined; name: string } {
    const name = nameOf(resource);
    // Two resources with the same objects (events of two groups) share a location and an encryption.
    const home = { group: resource.hubGroup ?? resource.group, resource: resource.resource };
    const { client, leases, feed } = clusterOf(serversOf(home));
    const transformer = options.transformerFor?.(home);
    const store = newEtcdStore({
      client,
      codec: newObjectCodec(resource, options.mediaType ?? defaultMediaType),
      leases,
      etcdPrefix: prefix,
      ...(transformer !== undefined && { transformer }),
      clock,
      log,
      metrics,
    });
    const size = sizes.get(name);
    if (options.watchCache === false || size === 0 || (size === undefined && options.cachedWhenNamed))
      return { storage: store, cache: undefined, name };
    if (size !== undefined) log.warn("a size for a watch cache is dropped, it is dynamic", { resource: name, size });
    metrics?.bookmarks(goTypeName(resource.group, resource.kind, isBuiltInGroup(resource.group)), () => feed.bookmarks);
    const cache = newWatchCache({
      store,
      feed,
      folder: storageFolder(resource),
      resource: name,
      indexes: resource.cacheIndexes ?? [],
      bookmarks,
      ...(options.readPatienceMs !== undefined && { patienceMs: options.readPatienceMs }),
      clock,
      log,
      metrics,
    });
    return { storage: cache, cache, name };
  }

  function storageFor(resource: StoredResource): Storage {
    const key = nameOf(resource);
    let entry = opened.get(key);
    if (entry === undefined) {
      entry = open(resource);
      opened.set(key, entry);
    }
    return entry.storage;
  }

  // The watches start before the first cache lists, so that no change is lost between a list and the watch.
  const lists = [options.etcd.servers, ...(options.etcd.overrides ?? []).map((override) => override.servers)];
  try {
    await Promise.all([...new Set(lists.map(clusterOf))].map((cluster) => cluster.feed.start()));
  } catch (err) {
    for (const cluster of clusters.values()) cluster.stop();
    throw err;
  }
  for (const resource of options.resources ?? []) storageFor(resource);

  const timers = [
    poll(options.countPollMs, async () => {
      for (const { storage, name } of opened.values()) metrics?.objects(name, await storage.count().catch(() => -1));
    }),
    poll(options.databaseSizePollMs, async () => {
      for (const { client } of clusters.values()) {
        const sizes = client.servers.map(async (server, i) =>
          metrics?.databaseSize(server, (await client.status(i)).dbSizeBytes),
        );
        for (const size of await Promise.allSettled(sizes)) if (size.status === "rejected") throw size.reason;
      }
    }),
  ];

  function poll(periodMs: number | undefined, read: () => Promise<void>): { cancel(): void } | undefined {
    if (periodMs === undefined || periodMs <= 0 || metrics === undefined) return undefined;
    return clock.every(
      periodMs,
      () => void read().catch((err: unknown) => log.warn("cannot read a metric of etcd", { error: String(err) })),
    );
  }

  const clients = [...clusters.values()].map((cluster) => cluster.client);
  const healthTimeoutMs = options.etcd.healthTimeoutMs ?? 2_000;

  async function caughtUp(): Promise<void> {
    await Promise.all([...opened.values()].map(({ cache }) => cache?.whenReady()));
    // Best effort: without it watches from before this process started are answered from etcd.
    const past = Promise.all([...clusters.values()].map(({ feed }) => feed.tellPast(rememberedRevisions)));
    await past.catch((err: unknown) => log.warn("cannot read the past of etcd", { error: String(err) }));
  }
  let past: Promise<void> | undefined;
  const whenReady = (): Promise<void> => {
    past ??= caughtUp();
    return past;
  };
  // Deferred by one event-loop turn, so that the caller's resources are opened.
  setImmediate(() => void whenReady());

  return {
    for: storageFor,
    release(resource) {
      const key = nameOf(resource);
      opened.get(key)?.cache?.stop();
      opened.delete(key);
    },
    ready: () => [...opened.values()].every(({ cache }) => cache === undefined || cache.ready),
    whenReady,
    health: newEtcdHealth(clients, prefix, healthTimeoutMs),
    warning: () => etcdWarning(clients, healthTimeoutMs),
    stop() {
      for (const timer of timers) timer?.cancel();
      for (const { cache } of opened.values()) cache?.stop();
      bookmarks.stop();
      for (const cluster of clusters.values()) cluster.stop();
    },
  };
}

function openCluster(servers: readonly string[], prefix: string, options: StorageOptions): Cluster {
  const { clock, log, metrics } = options;
  const { ca, cert, key, identity, calls, connect, compactionIntervalMs, leaseReuseSeconds } = options.etcd;
  const { around = (inner) => inner } = options.etcd;
  const client = around(newEtcdClient({ servers, ca, cert, key, identity, calls, connect }));
  const below = `${prefix}/`;
  const trust = newProgressTrust({ client, clock, log });
  let lastBarrier: Witness | undefined;
  const feed = newChangeFeed({
    clock,
    log,
    source: {
      currentRevision: async () => (await translated(client.range({ key: below + barrierKey, keysOnly: true }))).revision,
      past: (after, upTo) => readPast(client, below, after, upTo, options),
      async writeBarrier() {
        // A value of its own: a restored etcd may have another barrier at the same revision.
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
    feed,
    stop() {
      compactor.stop();
      feed.stop();
      trust.stop();
      client.close();
    },
  };
}

/** History loaded at startup, for watches that began before the restart. */
const rememberedRevisions = 2_000;
const pastTimeoutMs = 3_000;

/**
 * Reads all changes between two revisions with a watch. `upTo` is the revision of a write below the prefix, whose event ends it.
 */
function readPast(
  client: EtcdClient,
  prefix: string,
  after: number,
  upTo: number,
  { clock, log }: StorageOptions,
): Promise<{ after: number; changes: PastChange[] }> {
  return new Promise((resolve, reject) => {
    const changes: PastChange[] = [];
    let watch: EtcdWatch | undefined;
    const timer = clock.after(pastTimeoutMs, () => {
      watch?.stop();
      reject(new Error("it takes too long"));
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
              // Compacted meanwhile: the changes before it cannot be used.
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
