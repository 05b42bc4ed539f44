import type { DeleteOptions, KubeObject } from "@coxswain/apimachinery/meta/types";
import type { Entry, ListRequest, ListResult, ReadOptions, Storage, WatchRequest, WatchStream } from "../../storage/storage.ts";
import type { ResourceDefinition } from "./resource.ts";
import type { Strategy, StrategyContext } from "./strategy.ts";

/**
 * create, get, list, update, delete and watch for any strategy, in the resource's hub version. Handlers and
 * subresources call it; it knows neither HTTP nor etcd.
 * Source: k8s.io/apiserver pkg/registry/generic/registry/store.go
 */
export interface RegistryStore {
  readonly definition: ResourceDefinition;
  readonly storage: Storage;
  /** A store that writes through another strategy (status, scale, binding) into the same keys. */
  withStrategy(strategy: Strategy): RegistryStore;

  /** @param validateAdmission runs after the strategy's validation, before the write. */
  create(ctx: StrategyContext, object: KubeObject, options: StoreCreateOptions): Promise<Entry>;
  /** @throws NotFound. */
  get(namespace: string, name: string, options?: ReadOptions): Promise<Entry>;
  list(namespace: string, request: Omit<ListRequest, "prefix">): Promise<ListResult>;
  watch(namespace: string, request: Omit<WatchRequest, "prefix">): Promise<WatchStream>;

  /**
   * @param change from the stored object (undefined: absent, create-by-PUT) to the wanted one; may run many times.
   *   It never changes its argument. Patches, PUT and apply all come through here.
   * @returns `created` when a PUT made the object.
   * @throws NotFound, Conflict, Invalid.
   */
  update(
    ctx: StrategyContext,
    name: string,
    change: (current: KubeObject | undefined) => Promise<KubeObject> | KubeObject,
    options: StoreUpdateOptions,
  ): Promise<{ entry: Entry; created: boolean }>;

  /** @returns the last state when the object is gone, or its state with deletionTimestamp when it stays for now. */
  delete(
    ctx: StrategyContext,
    name: string,
    options: DeleteOptions,
    validateAdmission?: (old: KubeObject) => Promise<void>,
  ): Promise<{ entry: Entry; deleted: boolean }>;

  /** Deletes what the selection matches, several at once. @returns what was matched. */
  deleteCollection(
    ctx: StrategyContext,
    options: DeleteOptions,
    request: Omit<ListRequest, "prefix">,
    validateAdmission?: (old: KubeObject) => Promise<void>,
  ): Promise<ListResult>;
}

export interface StoreCreateOptions {
  /** With generateName: tried once more when the name was taken. */
  validateAdmission?: (object: KubeObject) => Promise<void>;
  signal?: AbortSignal;
}

export interface StoreUpdateOptions {
  /** Runs on the wanted object before the strategy (mutating plugins). */
  mutateAdmission?: (next: KubeObject, current: KubeObject | undefined) => Promise<void>;
  validateAdmission?: (next: KubeObject, current: KubeObject | undefined) => Promise<void>;
  preconditions?: { uid?: string; resourceVersion?: string };
  /** A patch may create (server-side apply). PUT asks the strategy instead. */
  forceAllowCreate?: boolean;
  signal?: AbortSignal;
}
