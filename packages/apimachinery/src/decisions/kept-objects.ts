import type { ObjectRef } from "./decision.ts";

export type ObjectName = Pick<ObjectRef, "group" | "resource" | "namespace" | "name">;

/** The decisions about one object; only `KeptObjects` may change the fields that are not `readonly`. */
export interface KeptObject<E> {
  readonly ref: ObjectRef;
  readonly entries: E[];
  list: List<E>;
  sizeBytes: number;
  /** Undefined at the ends of the list. */
  older: KeptObject<E> | undefined;
  newer: KeptObject<E> | undefined;
  /** Another object of the same namespace and name. */
  namesake: KeptObject<E> | undefined;
}

/** Objects in the order of their last change. */
interface List<E> {
  oldest: KeptObject<E> | undefined;
  newest: KeptObject<E> | undefined;
  bytes: number;
}

/**
 * Objects by name, and in the order of their last change, settled ones separately. A Map keeps an order,
 * too, but its iteration passes over all deleted entries; and a key composed of four strings costs more than everything else here.
 */
export class KeptObjects<E> {
  readonly #byNamespace = new Map<string, Map<string, KeptObject<E>>>();
  readonly #open: List<E> = { oldest: undefined, newest: undefined, bytes: 0 };
  readonly #settled: List<E> = { oldest: undefined, newest: undefined, bytes: 0 };

  get bytes(): number {
    return this.#open.bytes + this.#settled.bytes;
  }

  get settledBytes(): number {
    return this.#settled.bytes;
  }

  get oldestOpen(): KeptObject<E> | undefined {
    return this.#open.oldest;
  }

  get oldestSettled(): KeptObject<E> | undefined {
    return this.#settled.oldest;
  }

  get({ namespace, name, resource, group }: ObjectName): KeptObject<E> | undefined {
    let object = this.#byNamespace.get(namespace)?.get(name);
    while (object !== undefined && (object.ref.resource !== resource || object.ref.group !== group)) object = object.namesake;
    return object;
  }

  add(ref: ObjectRef, entries: E[], sizeBytes: number, isSettled: boolean): void {
    let names = this.#byNamespace.get(ref.namespace);
    if (names === undefined) {
      names = new Map();
      this.#byNamespace.set(ref.namespace, names);
    }
    const list = isSettled ? this.#settled : this.#open;
    const namesake = names.get(ref.name);
    const object: KeptObject<E> = { ref, entries, list, sizeBytes, older: undefined, newer: undefined, namesake };
    names.set(ref.name, object);
    append(object);
  }

  /** Makes the object the most recently changed one of its list. @param grownBytes by how much its size has changed */
  touch(object: KeptObject<E>, grownBytes: number, isSettled: boolean): void {
    unlink(object);
    object.sizeBytes += grownBytes;
    object.list = isSettled ? this.#settled : this.#open;
    append(object);
  }

  /** Removes an object, and subtracts its bytes from the total. */
  remove(object: KeptObject<E>): void {
    unlink(object);
    const { namespace, name } = object.ref;
    const names = this.#byNamespace.get(namespace)!;
    const { namesake } = object;
    let before = names.get(name)!;
    if (before !== object) {
      while (before.namesake !== object) before = before.namesake!;
      before.namesake = namesake;
    } else if (namesake !== undefined) names.set(name, namesake);
    else {
      names.delete(name);
      if (names.size === 0) this.#byNamespace.delete(namespace);
    }
  }
}

function append<E>(object: KeptObject<E>): void {
  const { list } = object;
  object.older = list.newest;
  object.newer = undefined;
  if (list.newest === undefined) list.oldest = object;
  else list.newest.newer = object;
  list.newest = object;
  list.bytes += object.sizeBytes;
}

function unlink<E>({ list, older, newer, sizeBytes }: KeptObject<E>): void {
  if (older === undefined) list.oldest = newer;
  else older.newer = newer;
  if (newer === undefined) list.newest = older;
  else newer.older = older;
  list.bytes -= sizeBytes;
}
