import type { Entry, WatchRequest } from "../storage/storage.ts";
import type { Change } from "./history.ts";

/** The cache state that watches read. */
export interface CacheMemory {
  isReady(): boolean;
  /**
   * Waits, for a limited time, until the cache is not older than `revision`.
   * @returns false when the cache is not ready @throws Timeout when the revision does not exist, or does not arrive in time
   */
  reachedExisting(revision: number): Promise<boolean>;
  /** Watches from revisions before this one are refused with 410: they belong to a history from before a restore of etcd. */
  historyStart(): number;
  /** Waits, for a limited time, for the initial list. @returns whether the cache is ready */
  readyInTime(): Promise<boolean>;
  /** Resolves true when everything written before the call is in the cache. */
  upToDate(): Promise<boolean>;
  revision(): number;
  /** The current entries that match the request. */
  present(request: WatchRequest): readonly Entry[];
  /** @returns undefined when the history does not reach back to `revision` */
  changesAfter(revision: number): readonly Change[] | undefined;
}
