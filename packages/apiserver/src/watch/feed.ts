import type { Clock } from "@coxswain/apimachinery/clock/clock";
import type { Logger } from "@coxswain/apimachinery/logging/logger";

/**
 * Watch multiplexer: a single etcd watch on the whole prefix, whose changes are routed to the caches by folder in revision
 * order. For consistent reads from memory it also determines whether everything written before the call has arrived, with a
 * read of the store's revision that concurrent requests share.
 */
export interface ChangeFeed {
  /** The caches have applied every change up to this revision. */
  readonly revision: number;
  /** Registers `consumer` for the changes below `folder` (`services/specs`). @returns a function that detaches it */
  attach(folder: string, consumer: FeedConsumer): () => void;
  /**
   * Passes the changes of the last `revisions` revisions before `startRevision` to the consumers, so that clients of a
   * restarted API server can resume their watches. Called once, after the caches are filled.
   */
  tellPast(revisions: number): Promise<void>;
  /** The revision that the watch starts after. A list at exactly this revision can be extended by the changes of `tellPast`. */
  readonly startRevision: number;
  /** Resolves true as soon as `revision` is reached, false after `timeoutMs`. */
  reached(revision: number, timeoutMs: number): Promise<boolean>;
  /**
   * Resolves when the caches hold everything that was written before the call.
   * @returns the revision waited for; undefined when the watch is too far behind: read the store instead
   * @throws the store's error when its revision cannot be read
   */
  fresh(): Promise<number | undefined>;
  /** The store's current revision; no client can have seen a later one. @throws the store's error when it cannot be read */
  storedRevision(): Promise<number>;
  /** Number of progress notifications received. */
  readonly bookmarks: number;
  /** Incremented whenever the watch lost changes and all caches have to be listed again. */
  readonly generation: number;
  /**
   * Start revision after a detected restore of etcd; earlier revisions may belong to a history that is gone. 0: never restored.
   */
  readonly restoredAt: number;
  readonly running: boolean;
  start(): Promise<void>;
  stop(): void;
}

/** What the multiplexer needs of etcd; implemented in `storage/open.ts`. */
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

export interface FeedConsumer {
  /** @param key relative to the folder. @returns a promise when decoding is asynchronous; the next change waits for it */
  apply(key: string, value: Buffer | undefined, revision: number): void | Promise<void>;
  /** Changes between `after` and the start revision. @param changes keys relative to the folder */
  past?(after: number, changes: readonly PastChange[]): Promise<void> | void;
  /** The watch lost changes: discard the state and list again. */
  reset(): void;
}

export interface ChangeFeedOptions {
  source: ChangeSource;
  clock: Clock;
  log: Logger;
}

/** Time to wait for the event of an existing revision before requesting progress or writing a barrier. */
const patienceMs = 4;
/** The store does not answer a progress request while its watch is behind; the request is repeated after this time. */
const progressPatienceMs = 100;
/** When the revision is not reached within this time, reads go to etcd. */
const catchUpTimeoutMs = 3_000;
/** How many revisions are written to get past those of a history that a restore took away. */
const mostBarriers = 1_000;
/** Concurrent reads of the revision; further requests share the next one. */
const concurrentReads = 4;

/** Creates the watch multiplexer of one etcd cluster. It does nothing before `start`. */
export function newChangeFeed(options: ChangeFeedOptions): ChangeFeed {
  const { source, clock, log } = options;
  const consumers = new Map<string, FeedConsumer[]>();
  let revision = 0;
  let startRevision = 0;
  let generation = 0;
  let isRestored = false;
  let restoredAt = 0;
  let bookmarks = 0;
  let stopped = false;
  let watch: ChangeWatch | undefined;
  let waiters: { revision: number; resolve: (reached: boolean) => void }[] = [];

  /** The registered folder of a key: one segment (`pods`) or two (`services/specs`). */
  function folderOf(key: string): string | undefined {
    const first = key.indexOf("/");
    if (first < 0) return undefined; // the barrier
    const folder = key.slice(0, first);
    if (consumers.has(folder)) return folder;
    const second = key.indexOf("/", first + 1);
    if (second < 0) return undefined;
    const longer = key.slice(0, second);
    return consumers.has(longer) ? longer : undefined;
  }

  /** @returns the consumers' pending work, undefined in the common case that all applied synchronously */
  function route(change: RawChange): Promise<unknown> | undefined {
    const { key } = change;
    const folder = folderOf(key);
    if (folder === undefined) return undefined;
    const name = key.slice(folder.length + 1);
    const busy: Promise<void>[] = [];
    for (const consumer of consumers.get(folder) as FeedConsumer[]) {
      const failed = (err: unknown): void => {
        // The consumer now misses a change. Reset in a microtask, after the other consumers got the rest of this revision.
        log.error("a change could not be applied, the cache is filled again", err, { key, revision: change.revision });
        queueMicrotask(() => consumer.reset());
      };
      try {
        const applied = consumer.apply(name, change.value, change.revision);
        if (applied !== undefined) busy.push(applied.catch(failed));
      } catch (err) {
        failed(err);
      }
    }
    return busy.length === 0 ? undefined : Promise.all(busy);
  }

  /** @param of the generation of the changes: a wait may end after a restart has begun a newer one */
  function onChanges(changes: readonly RawChange[], upTo: number, of: number, from = 0): void | Promise<void> {
    if (of !== generation) return;
    for (let i = from; i < changes.length; i++) {
      const change = changes[i] as RawChange;
      const busy = route(change);
      if (busy === undefined) continue;
      // The changes before this one are in the caches; publish their revision now, so that reads do not
      // lag behind the pending one.
      advance(change.revision - 1);
      return busy.then(() => onChanges(changes, upTo, of, i + 1));
    }
    advance(upTo);
  }

  function advance(upTo: number): void {
    revision = Math.max(upTo, revision);
    if (waiters.length === 0) return;
    const still: typeof waiters = [];
    for (const waiter of waiters) {
      if (waiter.revision <= upTo) waiter.resolve(true);
      else still.push(waiter);
    }
    waiters = still;
  }

  function reached(wanted: number, timeoutMs: number): Promise<boolean> {
    if (wanted <= revision) return Promise.resolve(true);
    return new Promise((resolve) => {
      const waiter = {
        revision: wanted,
        resolve(ok: boolean): void {
          timer.cancel();
          resolve(ok);
        },
      };
      const timer = clock.after(timeoutMs, () => {
        waiters = waiters.filter((other) => other !== waiter);
        resolve(false);
      });
      waiters.push(waiter);
    });
  }

  // A read is valid only for requests made before it began: those that arrive while `concurrentReads` run share the next one.
  let readsRunning = 0;
  let nextRead: PromiseWithResolvers<number> | undefined;

  function sharedRevision(): Promise<number> {
    if (nextRead === undefined) {
      nextRead = Promise.withResolvers();
      // Deferred by one event-loop turn, so that all requests of this turn share the read.
      if (readsRunning < concurrentReads) setImmediate(startRead);
    }
    return nextRead.promise;
  }

  function startRead(): void {
    const read = nextRead;
    if (read === undefined || readsRunning >= concurrentReads) return;
    nextRead = undefined;
    readsRunning++;
    const [known, of] = [revision, generation];
    source
      .currentRevision()
      .then((present) => {
        if (present < known && of === generation) {
          goneBack({ known, present });
        }
        read.resolve(present);
      }, read.reject)
      .finally(() => {
        readsRunning--;
        if (nextRead !== undefined) startRead();
      });
  }

  function goneBack(seen: Record<string, number>): void {
    log.error("etcd has gone back to an older revision: was it restored from a backup?", undefined, seen);
    isRestored = true;
    restart();
  }

  let barrier: Promise<void> | undefined;
  /** Revision of the last barrier written; its event has arrived or is on its way. */
  let barrierRevision = 0;

  async function writeBarrier(): Promise<void> {
    try {
      barrierRevision = await source.writeBarrier();
    } finally {
      barrier = undefined;
    }
  }

  /** The outstanding progress request, shared by all waiters. Ends with the notification or after `progressPatienceMs`. */
  let progress: { ended: Promise<void>; end(): void } | undefined;

  /** @returns undefined where the store cannot report progress */
  function progressAsked(): Promise<void> | undefined {
    if (progress === undefined && watch?.requestProgress()) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const end = (): void => {
        timer.cancel();
        progress = undefined;
        resolve();
      };
      const timer = clock.after(progressPatienceMs, end);
      progress = { ended: promise, end };
    }
    return progress?.ended;
  }

  function onProgress(upTo: number): void {
    bookmarks++;
    advance(upTo);
    progress?.end();
  }

  async function fresh(): Promise<number | undefined> {
    const wanted = await sharedRevision();
    if (watch === undefined) return undefined; // lost; the caches are not reset yet
    if (wanted <= revision || (await reached(wanted, patienceMs))) return wanted;
    // Either the event is on its way, or the revision was written outside of the prefix and no event will come.
    const deadline = clock.monotonic() + catchUpTimeoutMs;
    while (wanted > revision && !stopped && clock.monotonic() < deadline) {
      const answer = progressAsked();
      if (answer !== undefined) {
        await answer;
        // The request may predate this revision, or the member is behind: repeat it after a pause.
        await reached(wanted, patienceMs);
        continue;
      }
      if (barrierRevision < wanted) {
        try {
          barrier ??= writeBarrier();
          await barrier;
        } catch (err) {
          // A store that rejects writes (out of space) can still be read.
          log.v(2)?.info("cannot write a barrier, reading etcd instead", { error: String(err) });
          return undefined;
        }
        continue; // the shared barrier may have begun earlier, with an older revision
      }
      await reached(wanted, Math.max(deadline - clock.monotonic(), 1));
    }
    return wanted <= revision ? wanted : undefined;
  }

  /** @param isLost the caches miss changes */
  async function begin(isLost: boolean): Promise<void> {
    // With a barrier, `tellPast` can detect that it has received everything before it.
    let present = await source.writeBarrier().catch(() => source.currentRevision());
    if (isRestored) {
      // Clients hold revisions up to `revision` that the restored store gives out again. Once it is past them they can be told apart.
      for (let i = 0; !stopped && present <= revision && revision - present < mostBarriers && i < mostBarriers; i++) {
        const written = await source.writeBarrier().catch(() => undefined);
        if (written === undefined) break;
        present = written;
      }
    }
    if (stopped) return;
    startRevision = present;
    if (isLost) {
      // Reset the caches before `advance` resolves waiters: the caches do not hold this revision yet.
      generation++;
      if (isRestored) restoredAt = present;
      isRestored = false;
      revision = present;
      barrierRevision = 0;
      for (const list of consumers.values()) for (const consumer of list) consumer.reset();
    }
    advance(present);
    const of = generation;
    watch = source.watch(present, {
      onChanges: (changes, upTo) => onChanges(changes, upTo, of),
      onProgress,
      onLost: restart,
      onOtherHistory: () => goneBack({ known: revision }),
    });
  }

  /** The watch fell behind etcd's compaction, or etcd contradicted or lost earlier revisions: all caches are listed again. */
  const restart = (): void => {
    readAnew().catch((err: unknown) => log.error("cannot fill the caches again", err));
  };

  async function readAnew(): Promise<void> {
    if (watch === undefined) return;
    log.warn("the etcd watch missed changes; the caches are filled again");
    watch.stop();
    watch = undefined;
    while (!stopped) {
      try {
        return await begin(true);
      } catch (err) {
        log.error("cannot restart the etcd watch", err);
        await clock.sleep(1_000).catch(() => {});
      }
    }
  }

  async function tellPast(revisions: number): Promise<void> {
    const upTo = startRevision;
    const past = await source.past(Math.max(upTo - revisions, 0), upTo);
    if (stopped || startRevision !== upTo) return;
    const byFolder = new Map<string, PastChange[]>([...consumers.keys()].map((folder) => [folder, []]));
    for (const change of past.changes) {
      const folder = folderOf(change.key);
      if (folder !== undefined) byFolder.get(folder)?.push({ ...change, key: change.key.slice(folder.length + 1) });
    }
    for (const [folder, changes] of byFolder) {
      for (const consumer of consumers.get(folder) ?? []) await consumer.past?.(past.after, changes);
    }
  }

  return {
    get revision() {
      return revision;
    },
    get startRevision() {
      return startRevision;
    },
    tellPast,
    get bookmarks() {
      return bookmarks;
    },
    get generation() {
      return generation;
    },
    get restoredAt() {
      return restoredAt;
    },
    get running() {
      return watch !== undefined;
    },
    attach(folder, consumer) {
      consumers.set(folder, [...(consumers.get(folder) ?? []), consumer]);
      return () => {
        const left = (consumers.get(folder) ?? []).filter((other) => other !== consumer);
        if (left.length === 0) consumers.delete(folder);
        else consumers.set(folder, left);
      };
    },
    reached,
    fresh,
    storedRevision: sharedRevision,
    start: () => begin(false),
    stop() {
      stopped = true;
      watch?.stop();
      watch = undefined;
      progress?.end();
      for (const waiter of waiters) waiter.resolve(false);
      waiters = [];
    },
  };
}
