import type { GroupResource } from "@coxswain/apimachinery/objects/meta/group-version";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { ByteShare } from "@coxswain/apimachinery/process/memory/byte-share";
import { type BookmarkClock, newBookmarkClock } from "../watch/bookmarks.ts";
import { HistoryMemory } from "../watch/history.ts";
import { newWatchCache, type WatchCache } from "../watch/watch-cache.ts";
import { type Cluster, type EtcdOptions, openCluster } from "./cluster.ts";
import { EntryMemory } from "./entry.ts";
import { etcdWarning, newEtcdHealth } from "./etcd/health.ts";
import { EtcdStore } from "./etcd/store.ts";
import type { Transformer } from "./etcd/transformer.ts";
import { cleanPrefix, isBuiltInGroup, storageFolder } from "./key-layout.ts";
import { goTypeName, type StorageMetrics } from "./metrics.ts";
import { newObjectCodec, type StoredResource } from "./object-codec.ts";
import type { Storage } from "./storage.ts";
import { WatchPace } from "./watch-queue.ts";

/** The memory that storages of all resources share. */
interface StorageMemory {
  readonly entries: EntryMemory;
  readonly histories: HistoryMemory;
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
  /** Divides long computations into slices of event-loop time; default: not shared with the rest of the process. */
  turns?: Turns;
  /** Memory limits shared by the process; default: unlimited. */
  memory?: StorageMemory;
  /** How long a read waits for a revision that has not arrived; default 3 s, as upstream. */
  readTimeoutMs?: number;
  /** --etcd-count-metric-poll-period; 0 or less: never. */
  countPollMs?: number;
  /** --etcd-db-metric-poll-interval; 0 or less: never. */
  databaseSizePollMs?: number;
  /** Ends the opening, which otherwise tries to reach etcd until the deadline of its calls. */
  signal?: AbortSignal;
}

const defaultMediaType = "application/vnd.kubernetes.protobuf";
const allButEvents: ReadonlyMap<string, number> = new Map(["events", "events.events.k8s.io"].map((name) => [name, 0]));

/** History loaded at startup, for watches that began before the restart. */
const rememberedRevisions = 2_000;

/** Starts the watches and resolves when they run. @throws EtcdError when etcd cannot be reached; the reason of `signal` */
export async function openStorage(options: StorageOptions): Promise<StorageSet> {
  const prefix = cleanPrefix(options.etcd.prefix ?? "/registry");
  const clusters = new EtcdClusters(prefix, options);
  // The watches start before the first cache lists, so that no change is lost between a list and the watch.
  await clusters.start();
  const set = new StorageSet(prefix, clusters, options);
  set.start();
  return set;
}

interface Opened {
  readonly storage: Storage;
  /** undefined: reads go to etcd. */
  readonly cache: WatchCache | undefined;
}

/**
 * The storage layer: a client, a watch multiplexer and a compactor for each etcd cluster, a store and
 * a cache for each resource.
 */
export class StorageSet {
  readonly #options: StorageOptions;
  readonly #prefix: string;
  readonly #clusters: EtcdClusters;
  readonly #bookmarks: BookmarkClock;
  readonly #pace: WatchPace;
  /** Opened storages by the resource's name. */
  readonly #opened = new Map<string, Opened>();
  readonly #health: () => Promise<void>;
  readonly #healthTimeoutMs: number;
  readonly #turns: Turns;
  readonly #memory: StorageMemory;
  #timers: readonly { cancel(): void }[] = [];
  #caughtUp: Promise<void> | undefined;

  constructor(prefix: string, clusters: EtcdClusters, options: StorageOptions) {
    this.#options = options;
    this.#prefix = prefix;
    this.#clusters = clusters;
    this.#bookmarks = newBookmarkClock(options.clock);
    this.#pace = new WatchPace(options.clock);
    this.#turns = options.turns ?? new Turns();
    this.#memory = options.memory ?? {
      entries: new EntryMemory(new ByteShare(Number.POSITIVE_INFINITY)),
      histories: new HistoryMemory(Number.POSITIVE_INFINITY),
    };
    this.#healthTimeoutMs = options.etcd.healthTimeoutMs ?? 2_000;
    this.#health = newEtcdHealth(clusters.clients(), prefix, this.#healthTimeoutMs);
  }

  start(): void {
    const { resources, countPollMs, databaseSizePollMs } = this.#options;
    for (const resource of resources ?? []) this.for(resource);
    this.#timers = [
      ...this.#poll(countPollMs, (metrics) => this.#countObjects(metrics)),
      ...this.#poll(databaseSizePollMs, (metrics) => this.#clusters.measure(metrics)),
    ];
    // Deferred by one event-loop turn, so that the caller's resources are opened.
    setImmediate(() => void this.whenReady());
  }

  stop(): void {
    for (const timer of this.#timers) timer.cancel();
    for (const { cache } of this.#opened.values()) cache?.stop();
    this.#bookmarks.stop();
    this.#clusters.stop();
  }

  /** The storage of one resource, created on first use; also for resources added later (custom resources). */
  for(resource: StoredResource): Storage {
    const name = nameOf(resource);
    let opened = this.#opened.get(name);
    if (opened === undefined) {
      opened = this.#open(resource, name);
      this.#opened.set(name, opened);
    }
    return opened.storage;
  }

  /** Closes the storage of a resource that is no longer served. */
  release(resource: GroupResource): void {
    const name = nameOf(resource);
    this.#opened.get(name)?.cache?.stop();
    this.#opened.delete(name);
  }

  /** Whether all caches are filled. */
  ready(): boolean {
    return [...this.#opened.values()].every(({ cache }) => cache === undefined || cache.ready);
  }

  /** Resolves when the caches opened before the first call are filled and have loaded the recent history. */
  whenReady(): Promise<void> {
    this.#caughtUp ??= this.#catchUp();
    return this.#caughtUp;
  }

  /** The `etcd` health check; rejects with the reason. */
  health(): Promise<void> {
    return this.#health();
  }

  /** A problem that does not fail the health check but is shown with it. */
  warning(): Promise<string | undefined> {
    return etcdWarning(this.#clusters.clients(), this.#healthTimeoutMs);
  }

  #open(resource: StoredResource, name: string): Opened {
    const { clock, log, metrics, transformerFor, mediaType, readTimeoutMs } = this.#options;
    // Two resources with the same objects (events of two groups) share a location and an encryption.
    const home = { group: resource.hubGroup ?? resource.group, resource: resource.resource };
    const { client, leases, multiplexer, compacted } = this.#clusters.of(home);
    const transformer = transformerFor?.(home);
    const store = new EtcdStore({
      client,
      codec: newObjectCodec(resource, mediaType ?? defaultMediaType, this.#memory.entries),
      leases,
      etcdPrefix: this.#prefix,
      ...(transformer !== undefined && { transformer }),
      clock,
      log,
      metrics,
      ...(metrics !== undefined && { listed: (...cost) => metrics.storageList(name, ...cost) }),
      turns: this.#turns,
    });
    if (!this.#isCached(name)) return { storage: store, cache: undefined };
    metrics?.bookmarks(goTypeName(resource.group, resource.kind, isBuiltInGroup(resource.group)), () => multiplexer.bookmarks);
    const cache = newWatchCache({
      store,
      multiplexer,
      folder: storageFolder(resource),
      resource: name,
      indexes: resource.cacheIndexes ?? [],
      bookmarks: this.#bookmarks,
      pace: this.#pace,
      ...(readTimeoutMs !== undefined && { readTimeoutMs }),
      clock,
      log,
      metrics,
      turns: this.#turns,
      histories: this.#memory.histories,
      compacted,
    });
    return { storage: cache, cache };
  }

  #isCached(name: string): boolean {
    const { watchCache, watchCacheSizes = allButEvents, cachedWhenNamed, log } = this.#options;
    const size = watchCacheSizes.get(name);
    if (watchCache === false || size === 0 || (size === undefined && cachedWhenNamed)) return false;
    if (size !== undefined) log.warn("ignoring the size of a watch cache, which is dynamic", { resource: name, size });
    return true;
  }

  async #catchUp(): Promise<void> {
    await Promise.all([...this.#opened.values()].map(({ cache }) => cache?.whenReady()));
    // Best effort: without it watches from before this process started are answered from etcd.
    await this.#clusters
      .replayPast()
      .catch((err: unknown) => this.#options.log.warn("cannot load the recent history from etcd", { error: String(err) }));
  }

  async #countObjects(metrics: StorageMetrics): Promise<void> {
    for (const [name, { storage }] of this.#opened) metrics.objects(name, await storage.count().catch(() => -1));
  }

  #poll(periodMs: number | undefined, read: (metrics: StorageMetrics) => Promise<void>): { cancel(): void }[] {
    const { metrics, clock, log } = this.#options;
    if (periodMs === undefined || periodMs <= 0 || metrics === undefined) return [];
    const failed = (err: unknown): void => log.warn("cannot read a metric of etcd", { error: String(err) });
    return [clock.every(periodMs, () => void read(metrics).catch(failed))];
  }
}

/** The clusters that --etcd-servers and --etcd-servers-overrides name, one for each list of servers. */
class EtcdClusters {
  readonly #prefix: string;
  readonly #options: StorageOptions;
  readonly #byServers = new Map<string, Cluster>();

  constructor(prefix: string, options: StorageOptions) {
    this.#prefix = prefix;
    this.#options = options;
  }

  /** Starts the watches of all clusters. @throws EtcdError when one cannot be reached; all are stopped then */
  async start(): Promise<void> {
    const { etcd, signal } = this.#options;
    const stop = (): void => this.stop();
    signal?.addEventListener("abort", stop);
    try {
      for (const list of [etcd.servers, ...(etcd.overrides ?? []).map(({ servers }) => servers)]) this.#clusterOf(list);
      await Promise.all(this.#all().map((cluster) => cluster.multiplexer.start()));
      signal?.throwIfAborted();
    } catch (err) {
      this.stop();
      throw err;
    } finally {
      signal?.removeEventListener("abort", stop);
    }
  }

  stop(): void {
    for (const cluster of this.#all()) cluster.stop();
  }

  /** The cluster that stores the resource. */
  of(resource: GroupResource): Cluster {
    return this.#clusterOf(serversOf(resource, this.#options.etcd));
  }

  clients(): Cluster["client"][] {
    return this.#all().map(({ client }) => client);
  }

  async replayPast(): Promise<void> {
    await Promise.all(this.#all().map(({ multiplexer }) => multiplexer.replayPast(rememberedRevisions)));
  }

  /** @throws the error of the first server whose size cannot be read; all others are reported nevertheless */
  async measure(metrics: StorageMetrics): Promise<void> {
    const sizes = this.clients().flatMap((client) =>
      client.servers.map(async (server, i) => metrics.databaseSize(server, (await client.status(i)).dbSizeBytes)),
    );
    for (const size of await Promise.allSettled(sizes)) if (size.status === "rejected") throw size.reason;
  }

  #all(): Cluster[] {
    return [...this.#byServers.values()];
  }

  #clusterOf(servers: readonly string[]): Cluster {
    const key = servers.join(",");
    let cluster = this.#byServers.get(key);
    if (cluster === undefined) {
      cluster = openCluster(servers, this.#prefix, this.#options);
      this.#byServers.set(key, cluster);
    }
    return cluster;
  }
}

/** `*` matches all resources of a group; of duplicate overrides the last one wins. */
function serversOf({ group, resource }: GroupResource, { servers, overrides }: EtcdOptions): readonly string[] {
  const among = (name: string): readonly string[] | undefined =>
    overrides?.findLast((override) => override.group === group && override.resource === name)?.servers;
  return among(resource) ?? among("*") ?? servers;
}

function nameOf({ group, resource }: GroupResource): string {
  return group === "" ? resource : `${resource}.${group}`;
}
