import {
  alreadyExists,
  conflict,
  notFound,
  plainError,
  tooLargeResourceVersion,
} from "@coxswain/apimachinery/objects/errors/status-error";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { newUnstoredEntry } from "../entry.ts";
import { folderPrefix, isBuiltInGroup, storageFolder } from "../key-layout.ts";
import { goTypeName, type StorageMetrics } from "../metrics.ts";
import type { ObjectCodec } from "../object-codec.ts";
import { OwnWrite } from "../own-writes.ts";
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
import { type EtcdClient, MeasuredCalls } from "./client.ts";
import { statusErrorOf } from "./errors.ts";
import type { Leases } from "./leases.ts";
import { assertReached, EtcdLists, type ListCounter } from "./lists.ts";
import { preconditionProblem } from "./preconditions.ts";
import { watchStore } from "./store-watch.ts";
import { absent, passOver, type State, StoredValues } from "./stored-values.ts";
import { identityTransformer, type Transformer } from "./transformer.ts";
import { endOfPrefix, type Operation, type TxnResponse } from "./wire.ts";

interface EtcdStoreOptions {
  client: EtcdClient;
  codec: ObjectCodec;
  leases: Leases;
  /** `/registry`. */
  etcdPrefix: string;
  transformer?: Transformer;
  clock: Clock;
  log: Logger;
  metrics?: StorageMetrics | undefined;
  /** Called at the end of each list, with the numbers of {@link StorageMetrics.storageList}. */
  listed?: ListCounter;
  turns: Turns;
}

/**
 * The codec's resource in etcd. Reads are linearizable or at an exact revision; writes are transactions on the
 * mod revision that was read. A store holds no separate connection.
 * Source: k8s.io/apiserver pkg/storage/etcd3/store.go
 */
export class EtcdStore implements Storage {
  readonly codec: ObjectCodec;
  /** `/registry/pods/`. */
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
    const values = new StoredValues({ codec, transformer, prefix, log, turns });
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
      readInitial: (kv, isReadSoon) => values.initialEntry(kv, isReadSoon),
      passOver,
      timed: (operation, call) => calls.timed(operation, call),
      ...(options.listed !== undefined && { listed: options.listed }),
      turns,
    });
  }

  /**
   * For the cache: decodes a value delivered by the watch, synchronously unless a KMS has to decrypt it.
   * @returns undefined when the value cannot be decoded, which is logged
   * @throws when decryption fails temporarily
   */
  decode(key: string, value: Buffer, revision: number): Entry | undefined | Promise<Entry | undefined> {
    try {
      const entry = this.#values.entry({ key: this.prefix + key, value, modRevision: revision }, this.#options.turns.ahead);
      return entry instanceof Promise ? this.#encoded(entry).catch(passOver) : entry;
    } catch (err) {
      return passOver(err);
    }
  }

  /** Encodes the JSON that watchers get, in steps when the object is large. */
  async #encoded(decoding: Promise<Entry>): Promise<Entry> {
    const entry = await decoding;
    await this.#options.turns.ahead.run(entry.encodeInSteps());
    return entry;
  }

  /**
   * For the cache: reads all entries at one revision in pages, yielding to the event loop in between.
   * @param revision 0: the current one
   * @param onUnreadable gets the keys of skipped values that cannot be decoded; temporary failures throw instead
   * @returns the revision of the list
   */
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

interface ObjectWritesOptions {
  readonly client: Pick<EtcdClient, "range" | "txn">;
  readonly codec: ObjectCodec;
  readonly leases: Leases;
  readonly transformer: Transformer;
  /** `/registry/pods/`. */
  readonly prefix: string;
  readonly values: StoredValues;
  readonly calls: MeasuredCalls;
  readonly turns: Turns;
}

/** The writes of one resource: transactions on the mod revision that was read. See Storage for the contracts. */
class ObjectWrites implements Pick<Storage, "create" | "guaranteedUpdate" | "delete"> {
  readonly #options: ObjectWritesOptions;

  constructor(options: ObjectWritesOptions) {
    this.#options = options;
  }

  async create(key: string, object: KubeObject, options: WriteOptions = {}): Promise<Entry> {
    const { turns, codec } = this.#options;
    if (options.dryRun) {
      if ((await this.#readKey(key)).entry !== undefined) throw alreadyExists(this.#options.codec.resource, nameOf(key));
      await turns.next();
      return this.#unstored(key, object, await turns.run(codec.toStoredInSteps(object)));
    }
    if (object.metadata.resourceVersion) throw plainError("resourceVersion should not be set on objects to be created");
    const bytes = await turns.run(codec.toStoredInSteps(object), 0, options.signal);
    await turns.next(bytes.length);
    const { entry } = await this.#write("create", key, bytes, undefined, [], options);
    if (entry === undefined) throw alreadyExists(this.#options.codec.resource, nameOf(key));
    return entry;
  }

  async guaranteedUpdate(
    key: string,
    change: (current: Entry | undefined) => Promise<KubeObject> | KubeObject,
    update: UpdateOptions = {},
  ): Promise<Entry> {
    const { codec, turns } = this.#options;
    let state = await this.#initialState(key, update);
    for (;;) {
      update.signal?.throwIfAborted();
      const current = state.entry;
      let next: KubeObject;
      try {
        if (current === undefined && !update.ignoreNotFound) throw notFound(this.#options.codec.resource, nameOf(key));
        this.#checkPreconditions(key, current, update.preconditions);
        next = await change(current);
      } catch (err) {
        if (state.suggested && update.settles?.(err)) throw err;
        state = await this.#fresherState(key, state, err);
        continue;
      }
      if (current !== undefined && next === current.object() && !state.suggested && !state.rewrite) return current;
      // The size of the next state is not known yet; it is seldom much larger than that of the current one.
      await turns.next(current?.smallBytes);
      const bytes = await turns.run(codec.toStoredInSteps(next), current?.smallBytes, update.signal);
      await turns.next(bytes.length);
      if (current !== undefined && !state.rewrite && bytes.equals(state.bytes ?? (await this.#storedBytes(current)))) {
        if (!state.suggested) return current;
        const fresh = await this.#readKey(key);
        // Bytes of an older storage version are rewritten even when the object is unchanged: storage migration relies on it.
        const sameBytes = fresh.bytes === undefined || bytes.equals(fresh.bytes);
        if (fresh.entry?.revision === current.revision && !fresh.rewrite && sameBytes) return fresh.entry;
        state = fresh;
        continue;
      }
      if (update.dryRun) return this.#unstored(key, next, bytes);
      await turns.next(bytes.length);
      const present: Operation = { type: "range", range: { key: this.#options.prefix + key } };
      const written = await this.#write("update", key, bytes, current, [present], update);
      if (written.entry !== undefined) return written.entry;
      state = await this.#failureState(written.answer);
    }
  }

  #storedBytes(entry: Entry): Buffer | Promise<Buffer> {
    const { codec, turns } = this.#options;
    return turns.run(entry.storedInSteps(() => codec.toStoredInSteps(entry.object())));
  }

  async delete(key: string, request: DeleteRequest = {}): Promise<Entry> {
    const { client } = this.#options;
    let state = await this.#initialState(key, request);
    for (;;) {
      request.signal?.throwIfAborted();
      const current = state.entry;
      try {
        if (current === undefined) throw notFound(this.#options.codec.resource, nameOf(key));
        this.#checkPreconditions(key, current, request.preconditions);
        await request.validate?.(current);
      } catch (err) {
        state = await this.#fresherState(key, state, err);
        continue;
      }
      if (request.dryRun) return current;
      const answer = await this.#options.calls.timed(
        "delete",
        client.txn({
          compare: [{ key: this.#options.prefix + key, target: "modRevision", value: current.revision }],
          success: [{ type: "delete", key: this.#options.prefix + key }],
          failure: [{ type: "range", range: { key: this.#options.prefix + key } }],
        }),
      );
      if (answer.succeeded) return current.atRevision(answer.revision);
      state = await this.#failureState(answer);
    }
  }

  /**
   * Creates or replaces the value of `key` in a transaction.
   * @param before the entry to replace; undefined: the key must be absent
   * @param failure operations executed when the comparison fails
   * @returns the written entry, or the response of the failed comparison
   */
  async #write(
    operation: "create" | "update",
    key: string,
    bytes: Buffer,
    before: Entry | undefined,
    failure: readonly Operation[],
    { ttlSeconds, own }: WriteOptions,
  ): Promise<{ entry: Entry } | { answer: TxnResponse; entry?: never }> {
    const { codec, client } = this.#options;
    const sent = new OwnWrite(
      codec,
      key,
      bytes,
      await this.#options.transformer.toStored(bytes, this.#options.prefix + key),
      before,
    );
    const put = await this.#putOperation(key, sent.value, ttlSeconds);
    let revision: number | undefined;
    own?.add(sent);
    try {
      const compare = [{ key: this.#options.prefix + key, target: "modRevision", value: before?.revision ?? 0 }] as const;
      const written = client.txn({ compare, success: [put], failure });
      sent.prepare(this.#options.turns);
      const answer = await this.#options.calls.timed(operation, written);
      if (!answer.succeeded) return { answer };
      revision = answer.revision;
      return { entry: await sent.ready(revision) };
    } finally {
      own?.answered(sent, revision);
    }
  }

  async #readKey(key: string): Promise<State> {
    const { client } = this.#options;
    const answer = await this.#options.calls.timed("get", client.range({ key: this.#options.prefix + key }));
    return answer.kvs[0] === undefined ? absent : this.#options.values.read(answer.kvs[0]);
  }

  /** Not for a dry run: it has no transaction that would detect a stale suggestion. */
  async #initialState(key: string, { suggestion, dryRun }: UpdateOptions | DeleteRequest): Promise<State> {
    if (suggestion === undefined || dryRun) return this.#readKey(key);
    return { entry: suggestion, bytes: undefined, rewrite: false, suggested: true };
  }

  async #failureState(answer: TxnResponse): Promise<State> {
    const kv = answer.ranges[0]?.kvs[0];
    return kv === undefined ? absent : this.#options.values.read(kv);
  }

  async #putOperation(key: string, value: Buffer, ttlSeconds: number | undefined): Promise<Operation> {
    const lease = ttlSeconds ? await this.#leased(ttlSeconds) : undefined;
    return { type: "put", key: this.#options.prefix + key, value, ...(lease !== undefined && { lease }) };
  }

  async #leased(ttlSeconds: number): Promise<bigint> {
    const { leases } = this.#options;
    try {
      return await leases.forTtl(ttlSeconds);
    } catch (err) {
      throw statusErrorOf(err);
    }
  }

  /** The entry that a dry run returns: the object as it would be read back, with the resourceVersion it was given. */
  async #unstored(key: string, { metadata }: KubeObject, bytes: Buffer): Promise<Entry> {
    const { codec, turns } = this.#options;
    await turns.next(bytes.length);
    const object = await turns.run(codec.fromStoredInSteps(bytes));
    if (metadata.resourceVersion !== undefined) object.metadata.resourceVersion = metadata.resourceVersion;
    return newUnstoredEntry(codec, key, object);
  }

  /**
   * The state to try again with after `cause` was thrown for `state`: a cached one may be stale.
   * @throws `cause` when `state` is the current one
   */
  async #fresherState(key: string, state: State, cause: unknown): Promise<State> {
    if (!state.suggested) throw cause;
    const fresh = await this.#readKey(key);
    if (fresh.entry?.revision === state.entry?.revision) throw cause;
    return fresh;
  }

  #checkPreconditions(key: string, current: Entry | undefined, wanted: UpdateOptions["preconditions"]): void {
    const problem = preconditionProblem(current, wanted);
    if (problem === undefined) return;
    const { codec, prefix } = this.#options;
    const message = `StorageError: invalid object, Code: 4, Key: ${prefix}${key}, ResourceVersion: 0, AdditionalErrorMsg: ${problem}`;
    throw conflict(codec.resource, nameOf(key), message);
  }
}

const nameOf = (key: string): string => key.slice(key.lastIndexOf("/") + 1);
