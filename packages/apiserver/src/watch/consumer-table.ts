import type { Logger } from "@coxswain/apimachinery/logging/logger";
import type { CacheConsumer, PastChange, RawChange } from "./change-source.ts";

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
    for (const consumer of this.#byFolder.get(folder) as readonly CacheConsumer[]) {
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
