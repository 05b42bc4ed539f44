import type { ObjectKey } from "../objects/meta/object-key.ts";
import { controllerOf } from "../objects/meta/owner-references.ts";
import type { KubeObject } from "../objects/meta/types.ts";
import type { LabelSelector } from "../objects/selectors/label-selector.ts";
import type { IndexFunction, ObjectStore } from "./store.ts";

/** Read access to an informer's cache. Objects are shared and read-only: copy before modifying. */
export interface Lister<T> {
  get(key: ObjectKey): T | undefined;
  list(): T[];
  inNamespace(namespace: string): T[];
  /** @param namespace absent or `""`: all namespaces */
  select(selector: LabelSelector, namespace?: string): T[];
  byIndex(name: string, value: string): T[];
  /** Objects whose controlling owner reference has the owner's uid. */
  controlledBy(owner: KubeObject): T[];
}

/** A view of the store; indexes that its methods need are added to the store at their first use. */
export function newLister<T extends KubeObject>(store: ObjectStore<T>): Lister<T> {
  const inNamespace = (namespace: string): T[] => {
    store.addIndex(namespaceIndex, byNamespace);
    return store.byIndex(namespaceIndex, namespace);
  };
  return {
    get: (key) => store.get(key),
    list: () => store.list(),
    inNamespace,
    select(selector, namespace) {
      const candidates = namespace ? inNamespace(namespace) : store.list();
      return selector.empty ? candidates : candidates.filter(({ metadata }) => selector.matches(metadata.labels));
    },
    byIndex: (name, value) => store.byIndex(name, value),
    controlledBy({ metadata }) {
      store.addIndex(controllerIndex, byController);
      return metadata.uid === undefined ? [] : store.byIndex(controllerIndex, metadata.uid);
    },
  };
}

const namespaceIndex = "namespace";
const byNamespace: IndexFunction<KubeObject> = ({ metadata }) => [metadata.namespace ?? ""];

const controllerIndex = "controllerUID";
const byController: IndexFunction<KubeObject> = (object) => {
  const owner = controllerOf(object);
  return owner === undefined ? [] : [owner.uid];
};
