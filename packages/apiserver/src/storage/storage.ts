import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type { FieldSelector } from "@coxswain/apimachinery/selectors/field-selector";
import type { LabelSelector } from "@coxswain/apimachinery/selectors/label-selector";

/**
 * What the registry asks of a store: keys, values and revisions of one resource. Two implementations, `etcd/store.ts`
 * and `../watch/watch-cache.ts` (which wraps the first), run the suite in `suite.ts`.
 *
 * Keys are relative to the resource: `<namespace>/<name>`, or `<name>` for cluster-scoped ones; `key-layout.ts` puts
 * `<etcd-prefix>/<resource>/` before them. Objects are in the resource's hub version (see `registry/catalogue.ts`).
 * Source: k8s.io/apiserver pkg/storage/interfaces.go
 */
export interface Storage {
  /** Reads are answered from memory where they may be: a wrong resourceVersion is met by other code than etcd's. */
  readonly cached?: true;

  /** Fails with AlreadyExists when the key is there. `object.metadata.resourceVersion` must be empty. @returns the stored entry. */
  create(key: string, object: KubeObject, options?: WriteOptions): Promise<Entry>;

  /**
   * @returns undefined when the key is absent.
   * @throws 504 Timeout `Too large resource version` when `minimumRevision` is not reached in time.
   */
  get(key: string, options?: ReadOptions): Promise<Entry | undefined>;

  /** Entries in key order. @throws 410 Expired for compacted revisions and continue tokens. */
  list(request: ListRequest): Promise<ListResult>;

  /**
   * Reads, changes and writes back one object; starts over whenever another writer got there first. May begin with a
   * cached entry, but a refusal by `change` or a failed precondition on it is tried once more on a fresh read.
   * @param change may run many times; returns a new object and leaves its argument as it was. `current` is undefined
   *   when the key is absent and `ignoreNotFound` is set. Returning the argument itself writes nothing.
   * @throws NotFound when the key is absent; Conflict when preconditions fail.
   */
  guaranteedUpdate(
    key: string,
    change: (current: Entry | undefined) => Promise<KubeObject> | KubeObject,
    options?: UpdateOptions,
  ): Promise<Entry>;

  /**
   * Removes one object. `validate` sees the entry as it is removed and may throw to keep it.
   * @returns the last state; its `revision` is that of the deletion.
   * @throws NotFound; Conflict when preconditions fail.
   */
  delete(key: string, options?: DeleteRequest): Promise<Entry>;

  /** Starts after `revision` (0: with the present state as synthetic ADDED events, then what follows). */
  watch(request: WatchRequest): Promise<WatchStream>;

  /** The store's present revision, as a list that reads nothing would carry it. */
  currentRevision(): Promise<number>;

  /** Number of stored objects, cheaply; for metrics. */
  count(): Promise<number>;
}

/** One stored object at one revision; immutable and shared by all readers. Encodings are made on first demand. */
export interface Entry {
  /** Relative key, `<namespace>/<name>`. */
  readonly key: string;
  /** The mod revision; `metadata.resourceVersion` in decimal. */
  readonly revision: number;
  readonly labels: Readonly<Record<string, string>>;
  /** Selectable fields: `metadata.name`, `metadata.namespace` and what the resource adds (`spec.nodeName`). */
  readonly fields: Readonly<Record<string, string>>;
  /** The decoded object with its resourceVersion. Shared: never change it, `structuredClone` or spread first. */
  object(): KubeObject;
  /** The object in its hub version as JSON bytes with apiVersion, kind and resourceVersion, no newline. Shared. */
  json(): Buffer;
  /** The same with the newline that ends an answer, not copied. Shared. Every entry that a store gave has it. */
  jsonLine?(): Buffer;
  /** Keeps what was derived from this entry (another version's bytes, protobuf, Table rows, event frames) while it lives. */
  memo<T>(slot: string, make: (entry: Entry) => T): T;
  /**
   * What `make` encodes of the object, kept longer than the object itself, as long as the process has room for such
   * bytes. A slot always has the same bytes. Shared: read only. Every entry that a store gave has it.
   */
  kept?(slot: string, make: (object: KubeObject) => Buffer): Buffer;
  /** Length of what `kept` gives; encodes only when that was never done. */
  keptSize?(slot: string, make: (object: KubeObject) => Buffer): number;
  /** The same key with another object that no store holds (dry-run, the last state of a deletion). */
  with(object: KubeObject): Entry;
}

/** What a write asks before it begins and before it begins anew: a signal, or a request that need not make one. */
export type Cancellation = Pick<AbortSignal, "throwIfAborted">;

export interface WriteOptions {
  /** Seconds until the store forgets the object (events). */
  ttlSeconds?: number;
  dryRun?: boolean;
  signal?: Cancellation;
}

export interface ReadOptions {
  /** undefined: most recent (linearizable). 0: any. n: at least that. */
  minimumRevision?: number | undefined;
  signal?: AbortSignal;
}

export interface Selection {
  labels?: LabelSelector;
  fields?: FieldSelector;
}

export interface ListRequest extends Selection {
  /** `""` for all, `<namespace>/` for one namespace, or a whole key for a single object. */
  prefix: string;
  /** undefined or 0: no limit. */
  limit?: number;
  /** The opaque token of the previous page. */
  continueToken?: string;
  /** As in the resourceVersion table for lists; undefined: most recent. */
  revision?: number | undefined;
  match?: "Exact" | "NotOlderThan" | undefined;
  signal?: AbortSignal;
}

export interface ListResult {
  entries: Entry[];
  revision: number;
  continueToken?: string;
  /** Only without selectors. */
  remainingItemCount?: number;
}

export interface UpdateOptions extends WriteOptions {
  ignoreNotFound?: boolean;
  /**
   * Whether what `change` threw holds although the state it saw came from a cache, because the caller goes on with that
   * state's revision. Otherwise it is asked again about the present state.
   */
  settles?(thrown: unknown): boolean;
  preconditions?: { uid?: string; resourceVersion?: string };
  /** A cached state to begin with. */
  suggestion?: Entry | undefined;
}

export interface DeleteRequest {
  preconditions?: { uid?: string; resourceVersion?: string };
  validate?: (current: Entry) => Promise<void> | void;
  /** A cached state to begin with. */
  suggestion?: Entry | undefined;
  dryRun?: boolean;
  signal?: Cancellation;
}

export interface WatchRequest extends Selection {
  prefix: string;
  /** undefined and 0: begin with the present state (undefined: not older than now). n: everything after n. */
  revision?: number | undefined;
  bookmarks?: boolean;
  /** When the request ends on its own; a bookmark is sent shortly before. */
  deadlineMs?: number;
  signal: AbortSignal;
}

/**
 * ADDED, MODIFIED and DELETED carry the entry (for DELETED the last state, with the revision of the deletion);
 * an object that begins or stops to match the selectors is ADDED or DELETED. BOOKMARK has only a revision.
 * ERROR is the last event of its stream.
 */
export type WatchEvent =
  | { type: "ADDED" | "MODIFIED" | "DELETED"; entry: Entry }
  | { type: "BOOKMARK"; revision: number }
  | { type: "ERROR"; error: Error };

/** Bounded: when the reader is too slow the stream ends (never thins out). Ends when `stop` is called or the signal aborts. */
export interface WatchStream extends AsyncIterable<WatchEvent> {
  /** Takes what is there, or the first part of it, without waiting; none when nothing is there. Shared: read only. */
  take(): readonly WatchEvent[];
  /** Nothing comes any more, though something may still be there to be taken. */
  readonly ended: boolean;
  /**
   * Calls `wake` once, when `take` would return something or the stream ended: at the end of the turn of the loop in which
   * that happened, so that all of the turn is taken together. For one reader at a time.
   */
  whenReady(wake: () => void): void;
  /** The same as a promise: `false` when the stream ended and nothing is there. */
  ready(): Promise<boolean>;
  stop(): void;
}
