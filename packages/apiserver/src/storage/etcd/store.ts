import type { Clock } from "@coxswain/apimachinery/clock/clock";
import {
  alreadyExists,
  conflict,
  internalError,
  notFound,
  plainError,
  resourceExpired,
  tooLargeResourceVersion,
} from "@coxswain/apimachinery/errors/status-error";
import type { Turns } from "@coxswain/apimachinery/event-loop/turns";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import { goQuote } from "@coxswain/apimachinery/meta/go-quote";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import { newEntry, newUnstoredEntry } from "../entry.ts";
import { folderPrefix, isBuiltInGroup, storageFolder } from "../key-layout.ts";
import { goTypeName, type StorageMetrics } from "../metrics.ts";
import type { ObjectCodec } from "../object-codec.ts";
import { OwnWrite } from "../own-writes.ts";
import { transition } from "../selection.ts";
import type {
  DeleteRequest,
  Entry,
  ReadOptions,
  Selection,
  Storage,
  UpdateOptions,
  WatchRequest,
  WatchStream,
  WriteOptions,
} from "../storage.ts";
import { WatchQueue } from "../watch-queue.ts";
import type { EtcdClient } from "./client.ts";
import { EtcdError, statusErrorOf } from "./errors.ts";
import type { Leases } from "./leases.ts";
import { newEtcdLists } from "./lists.ts";
import { identityTransformer, isKeyOutOfReach, type TransformedValue, type Transformer } from "./transformer.ts";
import { type EtcdWatch, startEtcdWatch } from "./watcher.ts";
import { endOfPrefix, type KeyValue, type Operation, type TxnResponse, type WatchEventMessage } from "./wire.ts";

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

const noSpaceWarningMs = 60_000;

/** The state read before a write: the entry, and the bytes that the next state is compared with. */
interface State {
  entry: Entry | undefined;
  /** Plain (untransformed) stored bytes; undefined for a cached suggestion. */
  bytes: Buffer | undefined;
  /** Written back even when nothing changes (the encryption key was rotated). */
  rewrite: boolean;
  /** Taken from a cache: errors of validation against it are retried on a fresh read. */
  suggested: boolean;
}

type PresentState = State & { entry: Entry };
type StoredValue = Pick<KeyValue, "key" | "value" | "modRevision">;

/** Creates the store of the codec's resource; it holds no connection of its own. */
export function newEtcdStore(options: EtcdStoreOptions): EtcdStore {
  const { client, codec, leases, clock, log, metrics, turns } = options;
  const transformer = options.transformer ?? identityTransformer;
  const { resource } = codec;
  const prefix = folderPrefix(options.etcdPrefix, storageFolder(resource));
  const oneType = goTypeName(resource.group, resource.kind, isBuiltInGroup(resource.group));
  const listType = `*[]${oneType.slice(1)}`;

  const nameOf = (key: string): string => key.slice(key.lastIndexOf("/") + 1);

  /** Time of the last warning. Reads and readiness are unaffected, so the log must show it, at a limited rate. */
  let warnedAt = Number.NEGATIVE_INFINITY;
  function warnOfNoSpace(): void {
    if (clock.monotonic() - warnedAt < noSpaceWarningMs) return;
    warnedAt = clock.monotonic();
    log.warn("etcd has no space left and refuses all writes", { servers: client.servers.join(","), prefix });
  }

  async function timed<T>(operation: string, call: Promise<T>, type = operation === "list" ? listType : oneType): Promise<T> {
    const started = clock.monotonic();
    try {
      return await call;
    } catch (err) {
      if (err instanceof EtcdError && err.reason === "no-space") warnOfNoSpace();
      throw statusErrorOf(err);
    } finally {
      metrics?.etcdRequest(operation, type, (clock.monotonic() - started) / 1000);
    }
  }

  function decode(key: string, value: Buffer, revision: number): Entry | undefined | Promise<Entry | undefined> {
    try {
      const entry = entryOf({ key: prefix + key, value, modRevision: revision });
      return entry instanceof Promise ? entry.catch(passOver) : entry;
    } catch (err) {
      return passOver(err);
    }
  }

  /** Skips a value that can never be decoded, so that it does not disable the whole resource; rethrows temporary failures. */
  function passOver(err: unknown): undefined {
    if (isKeyOutOfReach(err)) throw err;
  }

  function entryOf(kv: StoredValue): Entry | Promise<Entry> {
    const state = read(kv);
    return state instanceof Promise ? state.then(({ entry }) => entry) : state.entry;
  }

  /** Decodes an entry that is not expected to be read soon. */
  function coldEntryOf(kv: StoredValue): Entry | Promise<Entry> {
    const state = read(kv);
    return state instanceof Promise ? state.then(coldEntry) : coldEntry(state);
  }

  function coldEntry({ entry, bytes }: PresentState): Entry {
    entry.cool(bytes);
    return entry;
  }

  function read(kv: StoredValue): PresentState | Promise<PresentState> {
    try {
      const plain = transformer.fromStored(kv.value, kv.key);
      if (!(plain instanceof Promise)) return stateOf(kv, plain);
      return plain.then((found) => stateOf(kv, found)).catch((err) => unreadable(kv, err));
    } catch (err) {
      return unreadable(kv, err);
    }
  }

  function stateOf(kv: StoredValue, { value, stale }: TransformedValue): PresentState {
    const entry = newEntry(codec, kv.key.slice(prefix.length), kv.modRevision, codec.fromStored(value));
    return { entry, bytes: value, rewrite: stale, suggested: false };
  }

  function unreadable({ key }: StoredValue, cause: unknown): never {
    log.error("cannot decode a value in etcd", cause, { key });
    throw internalError(new Error(`unable to decode the value of ${key} in etcd`, { cause }));
  }

  const absent: State = { entry: undefined, bytes: undefined, rewrite: false, suggested: false };

  async function readKey(key: string): Promise<State> {
    const answer = await timed("get", client.range({ key: prefix + key }));
    return answer.kvs[0] === undefined ? absent : read(answer.kvs[0]);
  }

  /** Not for a dry run: it has no transaction that would detect a stale suggestion. */
  async function stateToBeginWith(key: string, { suggestion, dryRun }: UpdateOptions | DeleteRequest): Promise<State> {
    if (suggestion === undefined || dryRun) return readKey(key);
    return { entry: suggestion, bytes: undefined, rewrite: false, suggested: true };
  }

  async function failureState(answer: TxnResponse): Promise<State> {
    const kv = answer.ranges[0]?.kvs[0];
    return kv === undefined ? absent : read(kv);
  }

  async function putOperation(key: string, value: Buffer, ttlSeconds: number | undefined): Promise<Operation> {
    const lease = ttlSeconds ? await leased(ttlSeconds) : undefined;
    return { type: "put", key: prefix + key, value, ...(lease !== undefined && { lease }) };
  }

  async function leased(ttlSeconds: number): Promise<bigint> {
    try {
      return await leases.forTtl(ttlSeconds);
    } catch (err) {
      throw statusErrorOf(err);
    }
  }

  /**
   * Creates or replaces the value of `key` in a transaction.
   * @param before the entry to replace; undefined: the key must be absent
   * @param failure operations executed when the comparison fails
   * @returns the written entry, or the response of the failed comparison
   */
  async function write(
    operation: "create" | "update",
    key: string,
    bytes: Buffer,
    before: Entry | undefined,
    failure: readonly Operation[],
    { ttlSeconds, own }: WriteOptions,
  ): Promise<{ entry: Entry } | { answer: TxnResponse; entry?: never }> {
    const sent = new OwnWrite(codec, key, bytes, await transformer.toStored(bytes, prefix + key), before);
    const put = await putOperation(key, sent.value, ttlSeconds);
    let revision: number | undefined;
    own?.add(sent);
    try {
      const compare = [{ key: prefix + key, target: "modRevision", value: before?.revision ?? 0 }] as const;
      const written = client.txn({ compare, success: [put], failure });
      sent.prepare();
      const answer = await timed(operation, written);
      if (!answer.succeeded) return { answer };
      revision = answer.revision;
      return { entry: sent.entry(revision) };
    } finally {
      own?.answered(sent, revision);
    }
  }

  async function create(key: string, object: KubeObject, options: WriteOptions = {}): Promise<Entry> {
    if (options.dryRun) {
      if ((await readKey(key)).entry !== undefined) throw alreadyExists(resource, nameOf(key));
      await turns.next();
      const bytes = codec.toStored(object);
      await turns.next();
      return unstored(key, object, bytes);
    }
    if (object.metadata.resourceVersion) throw plainError("resourceVersion should not be set on objects to be created");
    const { entry } = await write("create", key, codec.toStored(object), undefined, [], options);
    if (entry === undefined) throw alreadyExists(resource, nameOf(key));
    return entry;
  }

  /** The entry that a dry run returns: the object as it would be read back, with the resourceVersion it was given. */
  function unstored(key: string, { metadata }: KubeObject, bytes: Buffer): Entry {
    const object = codec.fromStored(bytes);
    if (metadata.resourceVersion !== undefined) object.metadata.resourceVersion = metadata.resourceVersion;
    return newUnstoredEntry(codec, key, object);
  }

  async function guaranteedUpdate(
    key: string,
    change: (current: Entry | undefined) => Promise<KubeObject> | KubeObject,
    update: UpdateOptions = {},
  ): Promise<Entry> {
    let state = await stateToBeginWith(key, update);
    for (;;) {
      update.signal?.throwIfAborted();
      const current = state.entry;
      let next: KubeObject;
      try {
        if (current === undefined && !update.ignoreNotFound) throw notFound(resource, nameOf(key));
        checkPreconditions(key, current, update.preconditions);
        next = await change(current);
      } catch (err) {
        // The cached state may be stale: an error is final only for the current state.
        if (!state.suggested || update.settles?.(err)) throw err;
        const fresh = await readKey(key);
        if (fresh.entry?.revision === current?.revision) throw err;
        state = fresh;
        continue;
      }
      if (current !== undefined && next === current.object() && !state.suggested && !state.rewrite) return current;
      const bytes = codec.toStored(next);
      if (
        current !== undefined &&
        !state.rewrite &&
        bytes.equals(state.bytes ?? current.stored(() => codec.toStored(current.object())))
      ) {
        if (!state.suggested) return current;
        const fresh = await readKey(key);
        // Bytes of an older storage version are rewritten even when the object is unchanged: storage migration relies on it.
        const sameBytes = fresh.bytes === undefined || bytes.equals(fresh.bytes);
        if (fresh.entry?.revision === current.revision && !fresh.rewrite && sameBytes) return fresh.entry;
        state = fresh;
        continue;
      }
      if (update.dryRun) return unstored(key, next, bytes);
      const present: Operation = { type: "range", range: { key: prefix + key } };
      const written = await write("update", key, bytes, current, [present], update);
      if (written.entry !== undefined) return written.entry;
      state = await failureState(written.answer);
    }
  }

  async function remove(key: string, request: DeleteRequest = {}): Promise<Entry> {
    let state = await stateToBeginWith(key, request);
    for (;;) {
      request.signal?.throwIfAborted();
      const current = state.entry;
      try {
        if (current === undefined) throw notFound(resource, nameOf(key));
        checkPreconditions(key, current, request.preconditions);
        await request.validate?.(current);
      } catch (err) {
        if (!state.suggested) throw err;
        const fresh = await readKey(key);
        if (fresh.entry?.revision === current?.revision) throw err;
        state = fresh;
        continue;
      }
      if (request.dryRun) return current;
      const answer = await timed(
        "delete",
        client.txn({
          compare: [{ key: prefix + key, target: "modRevision", value: current.revision }],
          success: [{ type: "delete", key: prefix + key }],
          failure: [{ type: "range", range: { key: prefix + key } }],
        }),
      );
      if (answer.succeeded) return current.atRevision(answer.revision);
      state = await failureState(answer);
    }
  }

  function checkPreconditions(key: string, current: Entry | undefined, wanted: UpdateOptions["preconditions"]): void {
    if (wanted === undefined) return;
    // An absent object has neither.
    const uid = current?.object().metadata.uid ?? "";
    const revision = current === undefined ? "" : String(current.revision);
    if (wanted.uid !== undefined && wanted.uid !== uid) {
      throw refused(key, `Precondition failed: UID in precondition: ${wanted.uid}, UID in object meta: ${uid}`);
    }
    if (wanted.resourceVersion !== undefined && wanted.resourceVersion !== revision) {
      throw refused(
        key,
        `Precondition failed: ResourceVersion in precondition: ${wanted.resourceVersion}, ResourceVersion in object meta: ${revision}`,
      );
    }
  }

  const refused = (key: string, message: string): Error =>
    conflict(
      resource,
      nameOf(key),
      `StorageError: invalid object, Code: 4, Key: ${prefix}${key}, ResourceVersion: 0, AdditionalErrorMsg: ${message}`,
    );

  const { list, readAll, assertReached } = newEtcdLists({
    client,
    prefix,
    read: entryOf,
    readCold: coldEntryOf,
    passOver,
    timed,
    turns,
  });

  async function get(key: string, read_: ReadOptions = {}): Promise<Entry | undefined> {
    const answer = await timed("get", client.range({ key: prefix + key }));
    assertReached(read_.minimumRevision, answer.revision);
    return answer.kvs[0] === undefined ? undefined : entryOf(answer.kvs[0]);
  }

  async function watch(request: WatchRequest): Promise<WatchStream> {
    let after = request.revision;
    let initial: Entry[] = [];
    if (after) {
      const present = await currentRevision();
      if (after > present) throw tooLargeResourceVersion(after, present, 0);
    } else {
      const present = await list({ prefix: request.prefix, ...selectionOf(request), signal: request.signal });
      after = present.revision;
      initial = present.entries;
    }
    const single = request.prefix !== "" && !request.prefix.endsWith("/");
    let source: EtcdWatch | undefined;
    const queue = new WatchQueue({ initial, signal: request.signal, onStop: () => source?.stop() });
    if (queue.ended) return queue;
    const requested = after;
    source = startEtcdWatch({
      client,
      prefix: prefix + request.prefix,
      single,
      after,
      prevKv: true,
      clock,
      log,
      async onEvents(events) {
        try {
          for (const event of events) {
            const { kv, prevKv } = event;
            const previous = prevKv === undefined ? undefined : await entryOf(prevKv);
            const current = event.type === "put" ? await entryOf(kv) : undefined;
            if (previous === undefined && kv.createRevision !== kv.modRevision) throw stateBeforeIsGone(event);
            const seen = transition(request, previous, current, kv.modRevision);
            if (seen !== undefined && !queue.push(seen)) return;
          }
        } catch (err) {
          queue.fail(err instanceof Error ? err : new Error(String(err)));
        }
      },
      onCompacted(compactRevision) {
        queue.fail(resourceExpired(`too old resource version: ${requested} (${compactRevision})`));
      },
    });
    if (queue.ended) source.stop();
    return queue;
  }

  async function currentRevision(): Promise<number> {
    return (await timed("get", client.range({ key: prefix, keysOnly: true }))).revision;
  }

  async function count(): Promise<number> {
    const counting = client.range({ key: prefix, end: endOfPrefix(prefix), countOnly: true });
    return (await timed("listWithCount", counting, prefix)).count;
  }

  return { codec, prefix, decode, readAll, create, get, list, guaranteedUpdate, delete: remove, watch, currentRevision, count };
}

/**
 * The previous state was compacted before the event arrived: whether the watcher knew the object cannot be determined.
 * Source: etcd3/event.go parseEvent
 */
function stateBeforeIsGone({ type, kv }: WatchEventMessage): Error {
  const what = `key=${goQuote(kv.key)}, modRevision=${kv.modRevision}, type=${type.toUpperCase()}`;
  return internalError(new Error(`etcd event received with PrevKv=nil (${what})`));
}

function selectionOf(request: Selection): Selection {
  return {
    ...(request.labels !== undefined && { labels: request.labels }),
    ...(request.fields !== undefined && { fields: request.fields }),
  };
}
