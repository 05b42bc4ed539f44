import type { Clock } from "@coxswain/apimachinery/clock/clock";
import type { Logger } from "@coxswain/apimachinery/logging/logger";

/**
 * The one feed of changes of an etcd cluster: a single watch on the whole prefix, handed to the caches by folder in
 * revision order. It also answers the question behind every consistent read from memory, "has everything that was
 * there when I asked arrived?", with a read of the store's revision that concurrent requests share.
 */
export interface ChangeFeed {
  /** Every change up to here was applied by the caches. */
  readonly revision: number;
  /** From now on `consumer` gets the changes below `folder` (`services/specs`). @returns detaches. */
  attach(folder: string, consumer: FeedConsumer): () => void;
  /**
   * Hands the changes of the last `revisions` revisions before the feed began to the consumers that can use them, so
   * that clients of an API server that was restarted go on where they stopped. Once, after the caches are filled.
   */
  tellPast(revisions: number): Promise<void>;
  /** Where the feed began; lists of exactly this revision have the past of `tellPast` before them. */
  readonly startRevision: number;
  /** Resolves true as soon as `revision` is reached, false when that takes longer than `timeoutMs`. */
  reached(revision: number, timeoutMs: number): Promise<boolean>;
  /**
   * Resolves when the caches hold everything that was written before the call.
   * @returns the revision that was waited for; undefined when the feed is too far behind: read the store instead.
   * @throws what the store throws when it cannot be asked.
   */
  fresh(): Promise<number | undefined>;
  /** The store's own revision: nobody can have seen a later one. @throws what the store throws when it cannot be asked */
  storedRevision(): Promise<number>;
  /** How often the store has told how far its watch is. */
  readonly bookmarks: number;
  /** Counts up whenever history was lost and all caches have to be read again. */
  readonly generation: number;
  /** Where the caches began after etcd was found to be restored: revisions before it may be of a history that is gone. 0: never. */
  readonly restoredAt: number;
  readonly running: boolean;
  start(): Promise<void>;
  stop(): void;
}

/** What the feed needs of etcd; `storage/open.ts` makes it. */
export interface ChangeSource {
  /** Linearizable. */
  currentRevision(): Promise<number>;
  /** Writes something below the prefix. @returns its revision. */
  writeBarrier(): Promise<number>;
  /** @param after changes after this revision, in order, whole revisions at a time. */
  watch(after: number, handlers: ChangeHandlers): ChangeWatch;
  /** The changes after `after` up to `upTo`, which is the revision of a barrier, or fewer when history is compacted. */
  past(after: number, upTo: number): Promise<{ after: number; changes: PastChange[] }>;
}

export interface ChangeHandlers {
  /** The next changes wait for the promise, if there is one. */
  onChanges(changes: readonly RawChange[], revision: number): void | Promise<void>;
  /** All changes up to `revision` were told; there may be none at it. */
  onProgress(revision: number): void;
  onLost(): void;
}

export interface ChangeWatch {
  /** Asks for an `onProgress`, which may not come. @returns false where the store cannot tell: a barrier must. */
  requestProgress(): boolean;
  stop(): void;
}

export interface PastChange extends RawChange {
  previous: { value: Buffer; revision: number } | undefined;
}

export interface RawChange {
  /** Relative to the prefix: `pods/web/front-0`. */
  key: string;
  /** undefined: deleted. Valid only until the call is done. */
  value: Buffer | undefined;
  revision: number;
}

export interface FeedConsumer {
  /** @param key relative to the folder. @returns a promise where a value must be waited for: nobody gets the next change before */
  apply(key: string, value: Buffer | undefined, revision: number): void | Promise<void>;
  /** Changes between `after` and the feed's start. @param changes keys relative to the folder */
  past?(after: number, changes: readonly PastChange[]): Promise<void> | void;
  /** History was lost: what this consumer knows may miss changes, read everything again. */
  reset(): void;
}

export interface ChangeFeedOptions {
  source: ChangeSource;
  clock: Clock;
  log: Logger;
}

/** How long an event of a revision that exists may take before it is found out whether there will be one for us. */
const patienceMs = 4;
/** The store says nothing as long as its watch is behind: then it is asked again. */
const progressPatienceMs = 100;
/** When that brings nothing in this time, reads go to etcd. */
const catchUpTimeoutMs = 3_000;
/** Reads of the revision under way at a time; more requests share the next one. */
const concurrentReads = 4;

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

  /** Folders have one part (`pods`) or two (`services/specs`). */
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

  /** @returns what has to be waited for, which is rare */
  function route(change: RawChange): Promise<unknown> | undefined {
    const { key } = change;
    const folder = folderOf(key);
    if (folder === undefined) return undefined;
    const name = key.slice(folder.length + 1);
    const busy: Promise<void>[] = [];
    for (const consumer of consumers.get(folder) as FeedConsumer[]) {
      const failed = (err: unknown): void => {
        // What it knows has a hole now. Not in this turn: the others first get the rest of this revision.
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

  /** @param of the generation that they belong to: those that were waited for may end after the feed began anew */
  function onChanges(changes: readonly RawChange[], upTo: number, of: number, from = 0): void | Promise<void> {
    if (of !== generation) return;
    for (let i = from; i < changes.length; i++) {
      const change = changes[i] as RawChange;
      const busy = route(change);
      if (busy === undefined) continue;
      // What was told before is in the caches, and is not to be called older while this is waited for.
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

  // A read answers only those who asked before it began: who comes while `concurrentReads` run shares the next one.
  let readsRunning = 0;
  let nextRead: PromiseWithResolvers<number> | undefined;

  function sharedRevision(): Promise<number> {
    if (nextRead === undefined) {
      nextRead = Promise.withResolvers();
      // One turn later, so that all requests of this turn share it.
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
          log.error("etcd has gone back to an older revision: was it restored from a backup?", undefined, { known, present });
          isRestored = true;
          restart();
        }
        read.resolve(present);
      }, read.reject)
      .finally(() => {
        readsRunning--;
        if (nextRead !== undefined) startRead();
      });
  }

  let barrier: Promise<void> | undefined;
  /** Of the last one written; its event is here or on its way. */
  let barrierRevision = 0;

  async function writeBarrier(): Promise<void> {
    try {
      barrierRevision = await source.writeBarrier();
    } finally {
      barrier = undefined;
    }
  }

  /** The request for progress that is under way, for all who wait. It ends with an answer, or after some time without. */
  let progress: { ended: Promise<void>; end(): void } | undefined;

  /** @returns undefined where the store cannot tell how far its watch is */
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
    if (watch === undefined) return undefined; // lost, and the caches are not told yet
    if (wanted <= revision || (await reached(wanted, patienceMs))) return wanted;
    // Either the event is on its way, or that revision was written outside of our prefix and none will come.
    const deadline = clock.monotonic() + catchUpTimeoutMs;
    while (wanted > revision && !stopped && clock.monotonic() < deadline) {
      const answer = progressAsked();
      if (answer !== undefined) {
        await answer;
        // It was asked for before this revision was there, or the member is behind: it is asked again, after a pause.
        await reached(wanted, patienceMs);
        continue;
      }
      if (barrierRevision < wanted) {
        try {
          barrier ??= writeBarrier();
          await barrier;
        } catch (err) {
          // A store that takes no writes (out of space) can still be read.
          log.v(2)?.info("cannot write a barrier, reading etcd instead", { error: String(err) });
          return undefined;
        }
        continue; // it may be one that was under way before, and older
      }
      await reached(wanted, Math.max(deadline - clock.monotonic(), 1));
    }
    return wanted <= revision ? wanted : undefined;
  }

  /** @param isLost what the caches know has a hole */
  async function begin(isLost: boolean): Promise<void> {
    // A barrier, so that `tellPast` knows when it has heard everything before it.
    const present = await source.writeBarrier().catch(() => source.currentRevision());
    if (stopped) return;
    startRevision = present;
    if (isLost) {
      // Before anybody who waits is told that this revision is reached: the caches are not there.
      generation++;
      if (isRestored) restoredAt = present;
      isRestored = false;
      revision = present;
      barrierRevision = 0;
      for (const list of consumers.values()) for (const consumer of list) consumer.reset();
    }
    advance(present);
    const of = generation;
    watch = source.watch(present, { onChanges: (changes, upTo) => onChanges(changes, upTo, of), onProgress, onLost: restart });
  }

  /** The watch fell behind what etcd still has, or etcd was wrong about what was told, or forgot it: everything is read anew. */
  const restart = (): void => {
    readAnew().catch((err: unknown) => log.error("cannot fill the caches again", err));
  };

  async function readAnew(): Promise<void> {
    if (watch === undefined) return;
    log.warn("what etcd's watch has told has a hole; the caches are filled again");
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
