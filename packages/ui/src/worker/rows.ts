import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { keysOf } from "@coxswain/apimachinery/process/narrowing/keys";
import type { Kind } from "../model/kinds.ts";
import { isEvent, type Row } from "../model/row.ts";
import type { Outbox } from "./outbox.ts";

/** The rows of one resource; passes changed ones to the outbox. */
export class Rows {
  readonly #kind: Kind;
  readonly #outbox: Pick<Outbox, "set" | "gone">;
  readonly #rows = new Map<string, Row>();
  /** uids in the current list so far; undefined outside of a list. */
  #seen: Set<string> | undefined;

  constructor(kind: Kind, outbox: Pick<Outbox, "set" | "gone">) {
    this.#kind = kind;
    this.#outbox = outbox;
  }

  get size(): number {
    return this.#rows.size;
  }

  /** Begins a list: `endList` removes the rows that were not `set` since. */
  beginList(): void {
    this.#seen = new Set();
  }

  /** Removes the rows that the list did not contain. */
  endList(): void {
    const seen = this.#seen ?? new Set();
    this.#seen = undefined;
    for (const uid of this.#rows.keys()) if (!seen.has(uid)) this.#remove(uid);
    this.#trim();
  }

  set(object: KubeObject): void {
    const row = this.#kind.rowOf(object);
    this.#seen?.add(row.uid);
    const known = this.#rows.get(row.uid);
    // Most updates, such as a node's heartbeat, change no shown field.
    if (known !== undefined && isSame(known, row)) return;
    this.#rows.set(row.uid, row);
    this.#outbox.set(row);
    if (this.#seen === undefined) this.#trim();
  }

  remove(object: KubeObject): void {
    this.#remove(object.metadata.uid ?? "");
  }

  clear(): void {
    for (const uid of [...this.#rows.keys()]) this.#remove(uid);
  }

  #remove(uid: string): void {
    if (this.#rows.delete(uid)) this.#outbox.gone(uid);
  }

  /** Removes the oldest rows above the limit. The limit may be exceeded by a tenth, so that not every new row causes a sort. */
  #trim(): void {
    const { most } = this.#kind;
    if (most === undefined || this.#rows.size <= most * 1.1) return;
    const oldest = [...this.#rows.values()].sort((a, b) => ageOf(b) - ageOf(a));
    for (const { uid } of oldest.slice(most)) this.#remove(uid);
  }
}

/** Sort key; larger for newer rows. */
const ageOf = (row: Row): number => (isEvent(row) ? row.lastMs : row.createdMs);

/** Compares all fields, also those that only rows of their kind have. */
const isSame = (a: Row, b: Row): boolean => keysOf(a).every((field) => a[field] === b[field]);
