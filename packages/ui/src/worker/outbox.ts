import type { FromWorker } from "../model/protocol.ts";
import type { Row } from "../model/row.ts";

/** Time for which changes are collected; after a pause they are sent at once. */
const collectMs = 50;
/** Maximum number of rows per message; this many occupy the page for a few milliseconds. */
const mostRows = 1_000;

/** Sends changed rows to the page in small messages, each row once in its last state. */
export class Outbox {
  readonly #post: (message: FromWorker) => void;
  readonly #set = new Map<string, Row>();
  readonly #gone = new Set<string>();
  #sentMs = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(post: (message: FromWorker) => void) {
    this.#post = post;
  }

  set(row: Row): void {
    this.#gone.delete(row.uid);
    this.#set.set(row.uid, row);
    this.#schedule();
  }

  gone(uid: string): void {
    this.#set.delete(uid);
    this.#gone.add(uid);
    this.#schedule();
  }

  /** Sends another message, in order with the rows. */
  send(message: FromWorker): void {
    while (this.#set.size + this.#gone.size > 0) this.#flush();
    this.#post(message);
  }

  #schedule(): void {
    const now = performance.now();
    this.#timer ??= setTimeout(() => this.#flush(), Math.max(0, this.#sentMs + collectMs - now));
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#sentMs = performance.now();
    const set = [...this.#set.values().take(mostRows)];
    for (const { uid } of set) this.#set.delete(uid);
    const gone = [...this.#gone];
    this.#gone.clear();
    this.#post({ type: "rows", set, gone });
    if (this.#set.size > 0) this.#timer = setTimeout(() => this.#flush());
  }
}
