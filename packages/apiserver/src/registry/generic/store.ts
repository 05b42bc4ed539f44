import { isAlreadyExists, isNotFound, isRequestEntityTooLarge } from "@coxswain/apimachinery/objects/errors/predicates";
import { alreadyExists, badRequest, generateNameConflict, notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import { splitKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { DeleteOptions, KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { FieldSelector } from "@coxswain/apimachinery/objects/selectors/field-selector";
import { pathSegmentFaults } from "@coxswain/apimachinery/objects/validation/dns";
import type { Cancellation, Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Entry, ListRequest, ListResult, Storage, WriteOptions } from "../../storage/storage.ts";
import { beforeCreate, generatedNameAttempts, nameObject } from "./before-create.ts";
import { newRemove } from "./remove.ts";
import type { RegistryStore, ResourceDefinition, StoreCreateOptions, StoreUpdateOptions } from "./resource.ts";
import { StoreUpdate } from "./store-update.ts";
import type { Strategy, StrategyContext } from "./strategy.ts";

export interface RegistryStoreOptions {
  definition: ResourceDefinition;
  storage: Storage;
  turns: Turns;
  /** Defaults to the definition's. */
  strategy?: Strategy;
  /** --event-ttl, for resources that expire. */
  eventTtlSeconds?: number;
  /** --delete-collection-workers */
  deleteCollectionWorkers?: number;
  /** --enable-garbage-collector; false: deletions add no orphan or foregroundDeletion finalizer. Default true. */
  garbageCollection?: boolean;
}

const defaultEventTtlSeconds = 3600;

/** The generic store of one resource. @throws Error when neither the options nor the definition have a strategy */
export function newRegistryStore(options: RegistryStoreOptions): RegistryStore {
  const { definition, storage } = options;
  const strategy = options.strategy ?? definition.strategy;
  if (strategy === undefined) throw new Error(`${definition.resource} has no strategy and cannot be stored`);
  return storeWith(options, strategy, storage);
}

function storeWith(options: RegistryStoreOptions, strategy: Strategy, storage: Storage): RegistryStore {
  return new GenericStore(options, strategy, storage);
}

class GenericStore implements RegistryStore {
  readonly definition: ResourceDefinition;
  readonly storage: Storage;
  readonly #options: RegistryStoreOptions;
  readonly #strategy: Strategy;
  /** The resource's own strategy, from which subresource strategies (status) inherit allowCreateOnUpdate and allowUnconditionalUpdate. */
  readonly #whole: Strategy;
  readonly #ttlSeconds: number | undefined;
  readonly #remove: ReturnType<typeof newRemove>;

  constructor(options: RegistryStoreOptions, strategy: Strategy, storage: Storage) {
    const { definition } = options;
    this.#options = options;
    this.#strategy = strategy;
    this.#whole = definition.strategy ?? strategy;
    this.#ttlSeconds = definition.ttlSeconds?.({ eventTtlSeconds: options.eventTtlSeconds ?? defaultEventTtlSeconds });
    this.#remove = newRemove({
      definition,
      strategy,
      storage,
      keyOf: (namespace, name) => this.#keyOf(namespace, name),
      garbageCollection: options.garbageCollection !== false,
      expiry: this.#ttlSeconds === undefined ? {} : { ttlSeconds: this.#ttlSeconds },
    });
    this.definition = definition;
    this.storage = storage;
  }

  withStrategy(other: Strategy): RegistryStore {
    return storeWith(this.#options, other, this.storage);
  }

  create(ctx: StrategyContext, object: KubeObject, request: StoreCreateOptions): Promise<Entry> {
    return this.#write(request, (tracked) => {
      if (!tracked) delete object.metadata.managedFields;
      return this.#create(ctx, object, request);
    });
  }

  async #create(ctx: StrategyContext, object: KubeObject, request: StoreCreateOptions): Promise<Entry> {
    const { definition } = this;
    const generated = await this.#options.turns.run(beforeCreate(definition, this.#strategy, ctx, object), 0, request.signal);
    const undo = await this.#strategy.beginCreate?.(object, ctx);
    let entry: Entry;
    try {
      await request.validateAdmission?.(object);
      entry = await this.#createNamed(ctx, object, generated, request.signal);
    } catch (err) {
      await undo?.revert();
      throw err;
    }
    await undo?.commit();
    return entry;
  }

  async get(namespace: string, name: string, read: import("../../storage/storage.ts").ReadOptions | undefined): Promise<Entry> {
    const { definition } = this;
    const entry = await this.storage.get(this.#keyOf(namespace, name), read);
    if (entry === undefined) throw notFound(definition, name);
    return entry;
  }

  list(namespace: string, request: Omit<ListRequest, "prefix">): Promise<ListResult> {
    return this.storage.list({ ...request, prefix: storagePrefix(this.definition.namespaced, namespace, request.fields) });
  }

  watch(
    namespace: string,
    request: Omit<import("../../storage/storage.ts").WatchRequest, "prefix">,
  ): Promise<import("../../storage/storage.ts").WatchStream> {
    return this.storage.watch({ ...request, prefix: storagePrefix(this.definition.namespaced, namespace, request.fields) });
  }

  async update(
    ctx: StrategyContext,
    name: string,
    change: (current: KubeObject | undefined) => Promise<KubeObject> | KubeObject,
    request: StoreUpdateOptions,
  ): Promise<{ entry: Entry; created: boolean }> {
    const context = {
      definition: this.definition,
      storage: this.storage,
      strategy: this.#strategy,
      whole: this.#whole,
      turns: this.#options.turns,
      ctx,
      name,
      key: this.#keyOf(ctx.namespace, name),
      change,
      request,
      writeOptions: this.#writeOptions(ctx, request.signal),
    };
    return this.#write(request, (tracked) => new StoreUpdate({ ...context, tracked }).run());
  }

  /**
   * Runs `attempt`; when the object is too large for etcd and the request allows it, once more without the managed fields.
   * @param attempt writes the object; without its managed fields when `tracked` is false
   * Source: k8s.io/apiserver pkg/endpoints/handlers/create.go, update.go, patch.go (isTooLargeError)
   */
  async #write<T>(
    { untrackedWhenTooLarge }: StoreCreateOptions | StoreUpdateOptions,
    attempt: (tracked: boolean) => Promise<T>,
  ): Promise<T> {
    try {
      return await attempt(true);
    } catch (err) {
      if (!untrackedWhenTooLarge || !isRequestEntityTooLarge(err)) throw err;
      await this.#options.turns.next();
      return attempt(false);
    }
  }

  async delete(
    ctx: StrategyContext,
    name: string,
    deleteOptions: DeleteOptions,
    validateAdmission: ((old: KubeObject) => Promise<void>) | undefined,
  ): Promise<{ entry: Entry; deleted: boolean }> {
    this.#strategy.checkDeletion?.(name);
    return this.#remove(ctx, name, deleteOptions, validateAdmission);
  }

  async deleteCollection(
    ctx: StrategyContext,
    deleteOptions: DeleteOptions,
    request: Omit<ListRequest, "prefix">,
    validateAdmission?: (old: KubeObject) => Promise<void>,
  ): Promise<ListResult> {
    const matched = await this.list(ctx.namespace, request);
    const waiting = matched.entries.values();
    const failures: unknown[] = [];
    const work = async (): Promise<void> => {
      for (const entry of waiting) {
        if (failures.length > 0 || request.signal?.aborted) return;
        const { namespace, name } = splitStorageKey(this.definition.namespaced, entry.key);
        try {
          await this.#remove({ ...ctx, namespace }, name, deleteOptions, validateAdmission);
        } catch (err) {
          if (!isNotFound(err)) failures.push(err);
        }
      }
    };
    await Promise.all(Array.from({ length: Math.max(1, this.#options.deleteCollectionWorkers ?? 1) }, work));
    if (failures.length > 0) throw failures[0];
    return matched;
  }

  #keyOf(namespace: string, name: string): string {
    return storageKey(this.definition.namespaced, namespace, name);
  }

  #writeOptions({ dryRun }: StrategyContext, signal: Cancellation | undefined): WriteOptions {
    return {
      dryRun,
      ...(this.#ttlSeconds !== undefined && { ttlSeconds: this.#ttlSeconds }),
      ...(signal !== undefined && { signal }),
    };
  }

  /** Retries with another name when a generated name is taken. */
  async #createNamed(ctx: StrategyContext, object: KubeObject, generated: boolean, signal?: Cancellation): Promise<Entry> {
    const { definition } = this;
    for (let attempt = 1; ; attempt++) {
      const name = object.metadata.name ?? "";
      const key = this.#keyOf(ctx.namespace, name);
      try {
        return await this.storage.create(key, object, this.#writeOptions(ctx, signal));
      } catch (err) {
        if (!isAlreadyExists(err)) throw err;
        if (generated) {
          if (attempt >= generatedNameAttempts) throw generateNameConflict(definition, name, 1);
          object.metadata.name = undefined!;
          nameObject(object);
          continue;
        }
        throw await this.#explainTaken(key, name, err);
      }
    }
  }

  /** @returns the AlreadyExists error to report; its text says so when the existing object is being deleted */
  async #explainTaken(key: string, name: string, err: unknown): Promise<unknown> {
    const { definition } = this;
    const present = await this.storage.get(key).catch(() => undefined);
    if (!present?.object().metadata.deletionTimestamp) return err;
    const taken = alreadyExists(definition, name);
    taken.status.message = `object is being deleted: ${taken.status.message}`;
    taken.message = taken.status.message;
    return taken;
  }
}

function splitStorageKey(namespaced: boolean, key: string): { namespace: string; name: string } {
  return namespaced ? splitKey(key) : { namespace: "", name: key };
}

/**
 * Storage key of an object, relative to the resource: `<namespace>/<name>` or `<name>`.
 * @throws BadRequest when a part is missing or not a valid path segment
 * Source: k8s.io/apiserver pkg/registry/generic/registry/store.go NamespaceKeyFunc, NoNamespaceKeyFunc
 */
export function storageKey(namespaced: boolean, namespace: string, name: string): string {
  if (namespaced && namespace === "") throw badRequest("Namespace parameter required.");
  if (name === "") throw badRequest("Name parameter required.");
  const faults = pathSegmentFaults(name);
  if (faults.length > 0) throw badRequest(`Name parameter invalid: ${goQuote(name)}: ${faults.join(";")}`);
  if (!namespaced) return name;
  const namespaceFaults = pathSegmentFaults(namespace);
  if (namespaceFaults.length > 0) {
    throw badRequest(`Namespace parameter invalid: ${goQuote(namespace)}: ${namespaceFaults.join(";")}`);
  }
  return `${namespace}/${name}`;
}

/** Key prefix of a list or watch: all objects, one namespace, or one object when the field selector has `metadata.name=`. */
export function storagePrefix(namespaced: boolean, namespace: string, fields: FieldSelector | undefined): string {
  const all = namespaced && namespace !== "" ? `${namespace}/` : "";
  if (all !== "" && pathSegmentFaults(namespace).length > 0)
    throw badRequest(`Namespace parameter invalid: ${goQuote(namespace)}`);
  const name = fields?.requiresExact("metadata.name");
  if (name === undefined || name === "" || pathSegmentFaults(name).length > 0) return all;
  if (!namespaced) return name;
  return namespace === "" ? all : all + name;
}
