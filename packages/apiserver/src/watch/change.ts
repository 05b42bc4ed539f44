import type { Entry, WatchEvent } from "../storage/storage.ts";

/** One change of one object, with the events that watchers may see of it. Each event is built once and shared by all of them. */
export class Change {
  readonly key: string;
  readonly revision: number;
  readonly previous: Entry | undefined;
  /** undefined: deleted. */
  readonly current: Entry | undefined;
  #added: WatchEvent | undefined;
  #modified: WatchEvent | undefined;
  #deleted: WatchEvent | undefined;

  constructor(key: string, revision: number, previous: Entry | undefined, current: Entry | undefined) {
    this.key = key;
    this.revision = revision;
    this.previous = previous;
    this.current = current;
  }

  /** The event for a watcher whose selector matched the object `before` the change and matches it `after`. */
  event(before: boolean, after: boolean): WatchEvent | undefined {
    if (after) {
      if (before) {
        this.#modified ??= { type: "MODIFIED", entry: this.current as Entry };
        return this.#modified;
      }
      this.#added ??= { type: "ADDED", entry: this.current as Entry };
      return this.#added;
    }
    if (!before) return undefined;
    if (this.#deleted === undefined) {
      const entry = (this.previous as Entry).atRevision(this.revision);
      entry.warm(); // pre-encode: the history holds the entry for minutes, but the decoded object is needed only briefly
      this.#deleted = { type: "DELETED", entry };
    }
    return this.#deleted;
  }
}
