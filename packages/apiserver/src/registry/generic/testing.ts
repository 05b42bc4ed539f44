/** Fixtures of this folder's tests: a generic store over a real etcd with its own key prefix, and small objects. */

import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { startEtcd } from "@coxswain/apimachinery/testing/etcd";
import { openStorage, type StorageSet } from "../../storage/open.ts";
import type { Storage } from "../../storage/storage.ts";
import type { RegistryStore, ResourceDefinition } from "./resource.ts";
import { newRegistryStore, type RegistryStoreOptions } from "./store.ts";
import type { Strategy, StrategyContext } from "./strategy.ts";

export type ConfigMap = KubeObject & { data?: Record<string, string> };

let prefixes = 0;
export const now = Date.parse("2026-01-02T03:04:05Z");
export const ctx = (overrides: Partial<StrategyContext> = {}): StrategyContext => ({
  user: undefined,
  namespace: "web",
  dryRun: false,
  now: () => now,
  featureEnabled: () => true,
  warn: () => {},
  ...overrides,
});

export function definitionOf(strategy: Partial<Strategy> = {}): ResourceDefinition {
  return {
    group: "",
    resource: "configmaps",
    kind: "ConfigMap",
    listKind: "ConfigMapList",
    singular: "",
    namespaced: true,
    verbs: [],
    versions: [{ version: "v1" }],
    hub: "v1",
    strategy: { namespaceScoped: true, ...strategy },
    table: { columns: [], cells: () => [] },
  };
}

/** A ConfigMap store over a real etcd; stopped when the test ends. */
export async function aStore(
  t: { after(fn: () => void): void },
  strategy: Partial<Strategy> = {},
  options: Partial<RegistryStoreOptions> = {},
): Promise<RegistryStore> {
  const etcd = await startEtcd();
  const storageSet: StorageSet = await openStorage({
    etcd: { servers: [etcd.endpoint], prefix: `/generic-test-${prefixes++}` },
    clock: realClock,
    log: discardLogger,
  });
  t.after(() => storageSet.stop());
  const definition = definitionOf(strategy);
  return newRegistryStore({ definition, storage: storageSet.for(definition), turns: new Turns(), ...options });
}

/** A storage that answers by `inner`, except for the methods in `changed`. */
export const storageLike = (inner: Storage, changed: Partial<Storage>): Storage => ({
  create: (...args) => inner.create(...args),
  get: (...args) => inner.get(...args),
  list: (request) => inner.list(request),
  guaranteedUpdate: (...args) => inner.guaranteedUpdate(...args),
  delete: (...args) => inner.delete(...args),
  watch: (request) => inner.watch(request),
  currentRevision: () => inner.currentRevision(),
  count: () => inner.count(),
  ...changed,
});

export const configMap = (metadata: KubeObject["metadata"], data: Record<string, string> = {}): ConfigMap => ({
  kind: "ConfigMap",
  apiVersion: "v1",
  metadata,
  data,
});

/** A change function for updates that merges data and metadata into the stored object. */
export const merge = (data: Record<string, string>, metadata: KubeObject["metadata"] = {}) =>
  ((current: ConfigMap) => ({
    ...current,
    data: { ...current.data, ...data },
    metadata: { ...current.metadata, ...metadata },
  })) as (current: KubeObject | undefined) => KubeObject;

/** Whether the object exists in namespace `web`. */
export const present = (store: RegistryStore, name: string): Promise<boolean> =>
  store.get("web", name).then(
    () => true,
    (err) => {
      if (isNotFound(err)) return false;
      throw err;
    },
  );
