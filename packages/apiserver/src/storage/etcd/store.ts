import type { Clock } from "@coxswain/apimachinery/clock/clock";
import { tooLargeResourceVersion } from "@coxswain/apimachinery/errors/status-error";
import type { Turns } from "@coxswain/apimachinery/event-loop/turns";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import { folderPrefix, isBuiltInGroup, storageFolder } from "../key-layout.ts";
import { goTypeName, type StorageMetrics } from "../metrics.ts";
import type { ObjectCodec } from "../object-codec.ts";
import type {
  DeleteRequest,
  Entry,
  ListRequest,
  ListResult,
  ReadOptions,
  Selection,
  Storage,
  UpdateOptions,
  WatchRequest,
  WatchStream,
  WriteOptions,
} from "../storage.ts";
import type { EtcdClient } from "./client.ts";
import type { Leases } from "./leases.ts";
import { assertReached, EtcdLists } from "./lists.ts";
import { MeasuredCalls } from "./measured-calls.ts";
import { ObjectWrites } from "./object-writes.ts";
import { watchStore } from "./store-watch.ts";
import { passOver, StoredValues } from "./stored-values.ts";
import { identityTransformer, type Transformer } from "./transformer.ts";
import { endOfPrefix } from "./wire.ts";

/**
 * One resource in etcd. Reads are linearizable or at an exact revision; writes are transactions on the
 * mod revision that was read.
 * Source: k8s.io/apiserver pkg/storage/etcd3/store.go
 */
export interface EtcdStore extends Storage {
  readonly codec: ObjectCodec;
  /** `/registry/pods/`. */
  readonly prefix: string;
  /**
   * For the cache: decodes a value delivered by the watch, synchronously unless a KMS has to decrypt it.
   * @returns undefined when the value cannot be decoded, which is logged
   * @throws when decryption fails temporarily
   */
  decode(key: string, value: Buffer, revision: number): Entry | undefined | Promise<Entry | undefined>;
  /**
   * For the cache: reads all entries at one revision in pages, yielding to the event loop in between.
   * @param revision 0: the current one
   * @param onUnreadable gets the keys of skipped values that cannot be decoded; temporary failures throw instead
   * @returns the revision of the list
   */
  readAll(onPage: (entries: Entry[]) => void, revision?: number, onUnreadable?: (key: string) => void): Promise<number>;
}

export interface EtcdStoreOptions {
  client: EtcdClient;
  codec: ObjectCodec;
  leases: Leases;
  /** `/registry`. */
  etcdPrefix: string;
  transformer?: Transformer;
  clock: Clock;
  log: Logger;
  metrics?: StorageMetrics | undefined;
  turns: Turns;
}

/** Creates the store of the codec's resource; it holds no connection of its own. */
export function newEtcdStore(options: EtcdStoreOptions): EtcdStore {
  return new ResourceStore(options);
}

class ResourceStore implements EtcdStore {
  readonly codec: ObjectCodec;
  readonly prefix: string;
  readonly #options: EtcdStoreOptions;
  readonly #calls: MeasuredCalls;
  readonly #values: StoredValues;
  readonly #writes: ObjectWrites;
  readonly #lists: EtcdLists;

  constructor(options: EtcdStoreOptions) {
    const { client, codec, leases, clock, log, metrics, turns, transformer = identityTransformer } = options;
    const { resource } = codec;
    const prefix = folderPrefix(options.etcdPrefix, storageFolder(resource));
    const goType = goTypeName(resource.group, resource.kind, isBuiltInGroup(resource.group));
    const calls = new MeasuredCalls({ goType, servers: client.servers, prefix, clock, log, metrics });
    const values = new StoredValues({ codec, transformer, prefix, log });
    this.codec = codec;
    this.prefix = prefix;
    this.#options = options;
    this.#calls = calls;
    this.#values = values;
    this.#writes = new ObjectWrites({ client, codec, leases, transformer, prefix, values, calls, turns });
    this.#lists = new EtcdLists({
      client,
      prefix,
      read: (kv) => values.entry(kv),
      readCold: (kv) => values.coldEntry(kv),
      passOver,
      timed: (operation, call) => calls.timed(operation, call),
      turns,
    });
  }

  decode(key: string, value: Buffer, revision: number): Entry | undefined | Promise<Entry | undefined> {
    try {
      const entry = this.#values.entry({ key: this.prefix + key, value, modRevision: revision });
      return entry instanceof Promise ? entry.catch(passOver) : entry;
    } catch (err) {
      return passOver(err);
    }
  }

  readAll(onPage: (entries: Entry[]) => void, revision?: number, onUnreadable?: (key: string) => void): Promise<number> {
    return this.#lists.readAll(onPage, revision, onUnreadable);
  }

  create(key: string, object: KubeObject, options?: WriteOptions): Promise<Entry> {
    return this.#writes.create(key, object, options);
  }

  async get(key: string, { minimumRevision }: ReadOptions = {}): Promise<Entry | undefined> {
    const answer = await this.#calls.timed("get", this.#options.client.range({ key: this.prefix + key }));
    assertReached(minimumRevision, answer.revision);
    return answer.kvs[0] === undefined ? undefined : this.#values.entry(answer.kvs[0]);
  }

  list(request: ListRequest): Promise<ListResult> {
    return this.#lists.list(request);
  }

  guaranteedUpdate(
    key: string,
    change: (current: Entry | undefined) => Promise<KubeObject> | KubeObject,
    update?: UpdateOptions,
  ): Promise<Entry> {
    return this.#writes.guaranteedUpdate(key, change, update);
  }

  delete(key: string, request?: DeleteRequest): Promise<Entry> {
    return this.#writes.delete(key, request);
  }

  async watch(request: WatchRequest): Promise<WatchStream> {
    const { client, clock, log } = this.#options;
    const common = { client, clock, log, prefix: this.prefix, values: this.#values, request };
    if (request.revision) {
      const present = await this.currentRevision();
      if (request.revision > present) throw tooLargeResourceVersion(request.revision, present, 0);
      return watchStore({ ...common, after: request.revision, initial: [] });
    }
    const present = await this.list({ prefix: request.prefix, ...selectionOf(request), signal: request.signal });
    return watchStore({ ...common, after: present.revision, initial: present.entries });
  }

  async currentRevision(): Promise<number> {
    return (await this.#calls.timed("get", this.#options.client.range({ key: this.prefix, keysOnly: true }))).revision;
  }

  async count(): Promise<number> {
    const counting = this.#options.client.range({ key: this.prefix, end: endOfPrefix(this.prefix), countOnly: true });
    return (await this.#calls.timed("listWithCount", counting, this.prefix)).count;
  }
}

function selectionOf(request: Selection): Selection {
  return {
    ...(request.labels !== undefined && { labels: request.labels }),
    ...(request.fields !== undefined && { fields: request.fields }),
  };
}
