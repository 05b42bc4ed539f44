import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { keyOf } from "@coxswain/apimachinery/objects/meta/object-key";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";

/**
 * An informer's objects overlaid with assumed ones, which the scheduler is about to write and the next cycle must see.
 * An assumed object is dropped when the API shows a newer version.
 * Source: pkg/scheduler/framework/plugins/volumebinding/assume_cache.go
 */
export interface AssumeCache<T extends KubeObject> {
  get(key: string): T | undefined;
  list(): T[];
  /** The informer's version, without assumed changes. */
  stored(key: string): T | undefined;
  /** @throws Error when the informer has no such object, or a newer version than the given one */
  assume(object: T): void;
  /** Reverts `assume`. */
  restore(key: string): void;
}

export function newAssumeCache<T extends KubeObject>(informer: SharedInformer<T>): AssumeCache<T> {
  const { lister } = informer;
  const assumed = new Map<string, T>();
  const seen = (object: T): void => {
    const own = assumed.get(keyOf(object));
    if (own !== undefined && versionOf(object) > versionOf(own)) assumed.delete(keyOf(object));
  };
  informer.addHandler({
    added: seen,
    updated: (_, now) => seen(now),
    deleted: (last) => void assumed.delete(keyOf(last)),
  });
  return {
    get: (key) => assumed.get(key) ?? lister.get(key),
    list: () => lister.list().map((object) => assumed.get(keyOf(object)) ?? object),
    stored: (key) => lister.get(key),
    assume(object) {
      const key = keyOf(object);
      const known = lister.get(key);
      if (known === undefined) throw new Error(`could not find ${object.kind} ${JSON.stringify(key)}`);
      if (versionOf(object) < versionOf(known)) {
        throw new Error(
          `${object.kind} ${JSON.stringify(key)} is out of sync (stored: ${versionOf(known)}, assume: ${versionOf(object)})`,
        );
      }
      assumed.set(key, object);
    },
    restore: (key) => void assumed.delete(key),
  };
}

/** The resourceVersion as a number, for comparisons; 0 when it is absent or not decimal. */
export const versionOf = ({ metadata }: KubeObject): bigint => {
  const text = metadata.resourceVersion ?? "0";
  return /^\d{1,20}$/.test(text) ? BigInt(text) : 0n;
};
