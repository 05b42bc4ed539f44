import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { CacheConsumer, ChangeSource, ChangeWatch, PastChange, RawChange } from "./change-source.ts";
import { AppliedRevision, CatchUp, SharedRead } from "./freshness.ts";

interface WatchMultiplexerOptions {
  readonly source: ChangeSource;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Upper bound of barriers written after a restore of etcd, to get past the revisions that clients may hold from the lost history. */
const mostBarriers = 1_000;
const retryMs = 1_000;

/**
 * Watch multiplexer: a single etcd watch on the whole prefix, whose changes are routed to the caches by folder in revision
 * order. For consistent reads from memory it also determines whether everything written before the call has arrived, with a
 * read of the store's revision that concurrent requests share. It does nothing before `start`.
 */
export class WatchMultiplexer {
  readonly #source: ChangeSource;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #consumers: ConsumerTable;
  readonly #applied: AppliedRevision;
  readonly #storeRevision: SharedRead<number>;
  readonly #catchUp: CatchUp;
  #startRevision = 0;
  #generation = 0;
  #isRestored = false;
  #restoredAt = 0;
  #bookmarks = 0;
  #stopped = false;
  #watch: ChangeWatch | undefined;

  constructor({ source, clock, log }: WatchMultiplexerOptions) {
    this.#source = source;
    this.#clock = clock;
    this.#log = log;
    this.#consumers = new ConsumerTable(log);
    this.#applied = new AppliedRevision(clock);
    this.#storeRevision = new SharedRead(() => this.#readStoreRevision());
    this.#catchUp = new CatchUp({
      applied: this.#applied,
      requestProgress: () => this.#watch?.requestProgress() ?? false,
      writeBarrier: () => source.writeBarrier(),
      clock,
      log,
    });
  }

  /** The caches have applied every change up to this revision. */
  get revision(): number {
    return this.#applied.value;
  }

  /** The revision that the watch starts after. A list at exactly this revision can be extended by the changes of `replayPast`. */
  get startRevision(): number {
    return this.#startRevision;
  }

  /** Number of progress notifications received. */
  get bookmarks(): number {
    return this.#bookmarks;
  }

  /** Incremented whenever the watch lost changes and all caches have to be listed again. */
  get generation(): number {
    return this.#generation;
  }

  /**
   * Start revision after a detected restore of etcd; earlier revisions may belong to a history that is gone. 0: never restored.
   */
  get restoredAt(): number {
    return this.#restoredAt;
  }

  get running(): boolean {
    return this.#watch !== undefined;
  }

  /** Registers `consumer` for the changes below `folder` (`services/specs`). @returns a function that detaches it */
  attach(folder: string, consumer: CacheConsumer): () => void {
    return this.#consumers.attach(folder, consumer);
  }

  /** @throws the store's error when its revision cannot be read */
  start(): Promise<void> {
    return this.#begin(false);
  }

  stop(): void {
    this.#stopped = true;
    this.#watch?.stop();
    this.#watch = undefined;
    this.#catchUp.stop();
    this.#applied.stop();
  }

  /** Resolves true as soon as `revision` is reached, false after `timeoutMs`. */
  reached(revision: number, timeoutMs: number): Promise<boolean> {
    return this.#applied.reached(revision, timeoutMs);
  }

  /** The store's current revision; no client can have seen a later one. @throws the store's error when it cannot be read */
  storedRevision(): Promise<number> {
    return this.#storeRevision.get();
  }

  /**
   * Resolves when the caches hold everything that was written before the call.
   * @returns the revision waited for; undefined when the watch is too far behind: read the store instead
   * @throws the store's error when its revision cannot be read
   */
  async fresh(): Promise<number | undefined> {
    const wanted = await this.#storeRevision.get();
    if (this.#watch === undefined) return undefined; // lost; the caches are not reset yet
    return (await this.#catchUp.reach(wanted)) ? wanted : undefined;
  }

  /**
   * Passes the changes of the last `revisions` revisions before `startRevision` to the consumers, so that clients of a
   * restarted API server can resume their watches. Called once, after the caches are filled.
   */
  async replayPast(revisions: number): Promise<void> {
    const upTo = this.#startRevision;
    const past = await this.#source.past(Math.max(upTo - revisions, 0), upTo);
    if (this.#stopped || this.#startRevision !== upTo) return;
    await this.#consumers.replay(past.after, past.changes);
  }

  async #readStoreRevision(): Promise<number> {
    const [known, generation] = [this.revision, this.#generation];
    const present = await this.#source.currentRevision();
    if (present < known && generation === this.#generation) this.#onRestored({ known, present });
    return present;
  }

  /** @param isLost the caches miss changes */
  async #begin(isLost: boolean): Promise<void> {
    // With a barrier, `replayPast` can detect that it has received everything before it.
    let present = await this.#source.writeBarrier().catch(() => this.#source.currentRevision());
    if (this.#isRestored) present = await this.#passHandedOut(present);
    if (this.#stopped) return;
    this.#startRevision = present;
    if (isLost) this.#resetCaches(present);
    this.#applied.advance(present);
    const generation = this.#generation;
    this.#watch = this.#source.watch(present, {
      onChanges: (changes, upTo) => this.#apply(changes, upTo, generation),
      onProgress: (upTo) => {
        this.#bookmarks++;
        this.#applied.advance(upTo);
        this.#catchUp.progressArrived();
      },
      onLost: () => this.#restart(),
      onOtherHistory: () => this.#onRestored({ known: this.revision }),
    });
  }

  /**
   * Clients hold revisions that the restored store will hand out again. Once it is past them they can be distinguished.
   * @returns the store's revision
   */
  async #passHandedOut(present: number): Promise<number> {
    for (let i = 0; i < mostBarriers && !this.#stopped; i++) {
      if (present > this.revision || this.revision - present >= mostBarriers) break;
      const written = await this.#source.writeBarrier().catch(() => undefined);
      if (written === undefined) break;
      present = written;
    }
    return present;
  }

  /** Must precede `advance`, which resolves waiters: the caches do not hold `present` yet. */
  #resetCaches(present: number): void {
    this.#generation++;
    if (this.#isRestored) this.#restoredAt = present;
    this.#isRestored = false;
    this.#applied.restartAt(present);
    this.#catchUp.restart();
    this.#consumers.resetAll();
  }

  /** @param generation that of the changes: a wait may end after a restart has begun a newer one */
  #apply(changes: readonly RawChange[], upTo: number, generation: number, from = 0): void | Promise<void> {
    if (generation !== this.#generation) return;
    for (let i = from; i < changes.length; i++) {
      const change = changes[i]!;
      const busy = this.#consumers.route(change);
      if (busy === undefined) continue;
      // The changes before this one are in the caches; publish their revision now, so that reads do not
      // lag behind the pending one.
      this.#applied.advance(change.revision - 1);
      return busy.then(() => this.#apply(changes, upTo, generation, i + 1));
    }
    this.#applied.advance(upTo);
  }

  #onRestored(seen: Record<string, number>): void {
    this.#log.error("etcd has gone back to an older revision: was it restored from a backup?", undefined, seen);
    this.#isRestored = true;
    this.#restart();
  }

  /** The watch fell behind etcd's compaction, or etcd contradicted or lost earlier revisions: all caches are listed again. */
  #restart(): void {
    this.#beginAgain().catch((err: unknown) => this.#log.error("cannot fill the caches again", err));
  }

  async #beginAgain(): Promise<void> {
    if (this.#watch === undefined) return;
    this.#log.warn("the etcd watch missed changes; the caches are filled again");
    this.#watch.stop();
    this.#watch = undefined;
    while (!this.#stopped) {
      try {
        return await this.#begin(true);
      } catch (err) {
        this.#log.error("cannot restart the etcd watch", err);
        await this.#clock.sleep(retryMs).catch(() => {});
      }
    }
  }
}

/** The caches by the folder of their keys; routes each change to those that it concerns. */
export class ConsumerTable {
  readonly #log: Logger;
  /** The arrays are replaced, never changed: `route` may be iterating one. */
  readonly #byFolder = new Map<string, readonly CacheConsumer[]>();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** @returns a function that detaches the consumer */
  attach(folder: string, consumer: CacheConsumer): () => void {
    this.#byFolder.set(folder, [...(this.#byFolder.get(folder) ?? []), consumer]);
    return () => {
      const left = (this.#byFolder.get(folder) ?? []).filter((other) => other !== consumer);
      if (left.length === 0) this.#byFolder.delete(folder);
      else this.#byFolder.set(folder, left);
    };
  }

  /**
   * Applies the change. A consumer that fails is reset after the others got the rest of the revision.
   * @returns the consumers' pending work, undefined in the common case that all applied synchronously
   */
  route(change: RawChange): Promise<unknown> | undefined {
    const { key } = change;
    const folder = this.#folderOf(key);
    if (folder === undefined) return undefined;
    const name = key.slice(folder.length + 1);
    const busy: Promise<void>[] = [];
    for (const consumer of this.#byFolder.get(folder)!) {
      const failed = (err: unknown): void => {
        // The consumer now misses a change.
        this.#log.error("a change could not be applied, the cache is filled again", err, { key, revision: change.revision });
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

  /** Passes to each consumer its part of `changes`, all changes after `after`; consumers without any get an empty array. */
  async replay(after: number, changes: readonly PastChange[]): Promise<void> {
    const parts = new Map<string, PastChange[]>([...this.#byFolder.keys()].map((folder) => [folder, []]));
    for (const change of changes) {
      const folder = this.#folderOf(change.key);
      if (folder !== undefined) parts.get(folder)?.push({ ...change, key: change.key.slice(folder.length + 1) });
    }
    for (const [folder, part] of parts) {
      for (const consumer of this.#byFolder.get(folder) ?? []) await consumer.past?.(after, part);
    }
  }

  resetAll(): void {
    for (const consumers of this.#byFolder.values()) for (const consumer of consumers) consumer.reset();
  }

  /** The registered folder of a key: one segment (`pods`) or two (`services/specs`). */
  #folderOf(key: string): string | undefined {
    const first = key.indexOf("/");
    if (first < 0) return undefined; // the barrier
    const folder = key.slice(0, first);
    if (this.#byFolder.has(folder)) return folder;
    const second = key.indexOf("/", first + 1);
    if (second < 0) return undefined;
    const longer = key.slice(0, second);
    return this.#byFolder.has(longer) ? longer : undefined;
  }
}
