import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { FieldSelector } from "@coxswain/apimachinery/objects/selectors/field-selector";
import type { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";
import type { Cancellation } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Entry } from "./entry.ts";
import type { OwnWrites } from "./own-writes.ts";

export type { Entry };

/**
 * Storage interface of the registry: keys, values and revisions of one resource. The two implementations, `etcd/store.ts` and
 * `../watch/watch-cache.ts` (which wraps the former), both run the tests in `suite.ts`.
 *
 * Keys are relative to the resource: `<namespace>/<name>`, or `<name>` for cluster-scoped ones; `key-layout.ts` puts
 * `<etcd-prefix>/<resource>/` before them. Objects are in the resource's hub version (see `registry/catalogue.ts`).
 * Source: k8s.io/apiserver pkg/storage/interfaces.go
 */
export interface Storage {
  /** Reads may be answered from memory. Upstream's cache reports an invalid resourceVersion differently from its etcd store. */
  readonly cached?: true;

  /** `object.metadata.resourceVersion` must be empty. @returns the stored entry @throws AlreadyExists when the key exists */
  create(key: string, object: KubeObject, options?: WriteOptions): Promise<Entry>;

  /**
   * @returns undefined when the key is absent
   * @throws 504 Timeout `Too large resource version` when `minimumRevision` is not reached in time
   */
  get(key: string, options?: ReadOptions): Promise<Entry | undefined>;

  /** Entries in key order. @throws 410 Expired for compacted revisions and continue tokens. */
  list(request: ListRequest): Promise<ListResult>;

  /**
   * Reads, changes and writes back one object, and retries on a concurrent write. It may start from a cached entry; when
   * `change` or a precondition rejects that one, they run again on a fresh read.
   * @param change may run many times; returns a new object and leaves its argument unchanged. `current` is undefined
   *   when the key is absent and `ignoreNotFound` is set. Returning `current.object()` writes nothing.
   * @throws NotFound when the key is absent; Conflict when preconditions fail
   */
  guaranteedUpdate(
    key: string,
    change: (current: Entry | undefined) => Promise<KubeObject> | KubeObject,
    options?: UpdateOptions,
  ): Promise<Entry>;

  /**
   * Removes one object. `validate` gets the entry about to be removed and may throw to prevent it.
   * @returns the last state; its `revision` is that of the deletion
   * @throws NotFound; Conflict when preconditions fail
   */
  delete(key: string, options?: DeleteRequest): Promise<Entry>;

  /** Watches the changes after `revision`; without one or with 0 the current objects come first as synthetic ADDED events. */
  watch(request: WatchRequest): Promise<WatchStream>;

  /** The store's current revision, as an empty list reports it. */
  currentRevision(): Promise<number>;

  /** Number of stored objects, without reading them; for metrics. */
  count(): Promise<number>;
}

export interface WriteOptions {
  /** Lifetime of the object in the store, in seconds (events). */
  ttlSeconds?: number;
  dryRun?: boolean;
  signal?: Cancellation;
  /** The own writes of a cache, to which this write is added: its watch event then reuses the entry. */
  own?: OwnWrites;
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
  /** Set only for requests without selectors. */
  remainingItemCount?: number;
}

export interface UpdateOptions extends WriteOptions {
  ignoreNotFound?: boolean;
  /**
   * Whether an error thrown by `change` for a cached state is final, because the caller continues with that state's revision.
   * Otherwise `change` runs again on a fresh read.
   */
  settles?(thrown: unknown): boolean;
  preconditions?: { uid?: string; resourceVersion?: string };
  /** A cached state to start from. */
  suggestion?: Entry | undefined;
}

export interface DeleteRequest {
  preconditions?: { uid?: string; resourceVersion?: string };
  validate?: (current: Entry) => Promise<void> | void;
  /** A cached state to start from. */
  suggestion?: Entry | undefined;
  dryRun?: boolean;
  signal?: Cancellation;
  /** The own writes of a cache, to which this write is added: its watch event then reuses the entry. */
  own?: OwnWrites;
}

export interface WatchRequest extends Selection {
  prefix: string;
  /** undefined and 0: begin with the current objects (undefined: not older than the call). n: all changes after n. */
  revision?: number | undefined;
  bookmarks?: boolean;
  /** When the request ends by its timeout, as a timestamp; a bookmark is sent shortly before. */
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

/**
 * Bounded: when the client is too slow the stream ends rather than dropping events. Also ends on `stop` or abort of the signal.
 */
export interface WatchStream extends AsyncIterable<WatchEvent> {
  /** Returns pending events, possibly only the first part, without waiting; empty when there are none. Shared: read only. */
  take(): readonly WatchEvent[];
  /** No further events will be queued; some may still be pending. */
  readonly ended: boolean;
  /**
   * Calls `wake` once, when `take` would return events or the stream has ended: at the end of that event-loop turn, so that
   * all events of the turn are taken together. Supports one reader.
   */
  whenReady(wake: () => void): void;
  /** `whenReady` as a promise; false when the stream has ended and nothing is pending. */
  ready(): Promise<boolean>;
  stop(): void;
}
