import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { keyOf } from "@coxswain/apimachinery/meta/object-key";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";

/**
 * What an informer knows, with objects on top as they will be once the scheduler has written them: the next decision
 * counts on it. An assumed object goes when the API shows a newer one.
 * Source: pkg/scheduler/framework/plugins/volumebinding/assume_cache.go
 */
export interface AssumeCache<T extends KubeObject> {
  get(key: string): T | undefined;
  list(): T[];
  /** As the API shows it. */
  stored(key: string): T | undefined;
  /** @throws Error when the API shows a newer one than the decision was made on */
  assume(object: T): void;
  /** Takes `assume` back. */
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

export const versionOf = ({ metadata }: KubeObject): bigint => {
  const text = metadata.resourceVersion ?? "0";
  return /^\d{1,20}$/.test(text) ? BigInt(text) : 0n;
};
