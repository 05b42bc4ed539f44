import { TransientMap } from "@coxswain/apimachinery/meta/transient-map";
import type { Entry } from "../storage/storage.ts";

/** Limit of own writes whose events are outstanding; beyond it (the watch is interrupted) the oldest are decoded again. */
const mostEntries = 1_000;

/** Entries written by this process whose events have not arrived, by revision: the event reuses the response's entry. */
export class OwnWrites {
  readonly #byRevision = new TransientMap<number, Entry>();

  add(entry: Entry): void {
    this.#byRevision.set(entry.revision, entry);
    if (this.#byRevision.size > mostEntries) this.#byRevision.delete(Number(this.#byRevision.firstKey()));
  }

  /** Removes the entry at `revision`. @returns undefined when there is none, or when it has another key */
  take(key: string, revision: number): Entry | undefined {
    const entry = this.#byRevision.get(revision);
    if (entry === undefined) return undefined;
    this.#byRevision.delete(revision);
    return entry.key === key ? entry : undefined;
  }

  clear(): void {
    this.#byRevision.clear();
  }
}
