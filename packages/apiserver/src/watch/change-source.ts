/** The source of changes for the multiplexer; implemented over etcd in `storage/cluster.ts`. */
export interface ChangeSource {
  /** Linearizable read of the store's revision. */
  currentRevision(): Promise<number>;
  /** Writes the barrier key below the prefix. @returns the revision of the write */
  writeBarrier(): Promise<number>;
  /** @param after the watch delivers changes after this revision, in order, whole revisions at a time */
  watch(after: number, handlers: ChangeHandlers): ChangeWatch;
  /**
   * The changes after `after` up to `upTo`, the revision of a barrier; fewer when history is compacted, then `after` is later.
   */
  past(after: number, upTo: number): Promise<{ after: number; changes: PastChange[] }>;
}

export interface ChangeHandlers {
  /** When a promise is returned, the next call waits for it. */
  onChanges(changes: readonly RawChange[], revision: number): void | Promise<void>;
  /** All changes up to `revision` were delivered; there may be none at it. */
  onProgress(revision: number): void;
  onLost(): void;
  /** etcd was restored: changes that were delivered did not happen there. */
  onOtherHistory(): void;
}

export interface ChangeWatch {
  /**
   * Requests an `onProgress`, which may not come. @returns false where the store's progress is not usable and a barrier is needed
   */
  requestProgress(): boolean;
  stop(): void;
}

export interface PastChange extends RawChange {
  previous: { value: Buffer; revision: number } | undefined;
}

export interface RawChange {
  /** Relative to the prefix: `pods/web/front-0`. */
  key: string;
  /** undefined: deleted. The buffer is valid only during the call. */
  value: Buffer | undefined;
  revision: number;
}

/** A cache, as the multiplexer sees it. */
export interface CacheConsumer {
  /** @param key relative to the folder. @returns a promise when decoding is asynchronous; the next change waits for it */
  apply(key: string, value: Buffer | undefined, revision: number): void | Promise<void>;
  /** Changes between `after` and the start revision. @param changes keys relative to the folder */
  past?(after: number, changes: readonly PastChange[]): Promise<void> | void;
  /** The watch lost changes: discard the state and list again. */
  reset(): void;
}
