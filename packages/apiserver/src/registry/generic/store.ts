import { invalidValue } from "@coxswain/apimachinery/errors/field-error";
import { GoText } from "@coxswain/apimachinery/errors/go-syntax";
import { isAlreadyExists, isConflict, isNotFound } from "@coxswain/apimachinery/errors/predicates";
import { alreadyExists, conflict, generateNameConflict, invalid, notFound } from "@coxswain/apimachinery/errors/status-error";
import type { Turns } from "@coxswain/apimachinery/event-loop/turns";
import { deepClone } from "@coxswain/apimachinery/meta/deep-equal";
import { splitKey } from "@coxswain/apimachinery/meta/object-key";
import type { DeleteOptions, KubeObject } from "@coxswain/apimachinery/meta/types";
import type { Cancellation, Entry, ListRequest, ListResult, Storage } from "../../storage/storage.ts";
import { beforeCreate, generatedNameAttempts, nameObject } from "./before-create.ts";
import { beforeUpdate } from "./before-update.ts";
import { deletesByUpdate } from "./graceful-delete.ts";
import { storageKey, storagePrefix } from "./keys.ts";
import { keepTimesWhenUnchanged } from "./managed-times.ts";
import { newRemove } from "./remove.ts";
import type { RegistryStore, ResourceDefinition, StoreCreateOptions, StoreUpdateOptions } from "./resource.ts";
import { revisionOf } from "./revision.ts";
import type { Strategy, StrategyContext, Transaction } from "./strategy.ts";

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

const optimisticLockText = "the object has been modified; please apply your changes to the latest version and try again";
const defaultEventTtlSeconds = 3600;

/** The generic store of one resource. @throws Error when neither the options nor the definition have a strategy */
export function newRegistryStore(options: RegistryStoreOptions): RegistryStore {
  const { definition, storage } = options;
  const strategy = options.strategy ?? definition.strategy;
  if (strategy === undefined) throw new Error(`${definition.resource} has no strategy and cannot be stored`);
  return storeWith(options, strategy, storage);
}

function storeWith(options: RegistryStoreOptions, strategy: Strategy, storage: Storage): RegistryStore {
  const { definition } = options;
  const { namespaced } = definition;
  // Subresource strategies (status) inherit allowCreateOnUpdate and allowUnconditionalUpdate from the resource.
  const whole = definition.strategy ?? strategy;
  const ttlSeconds = definition.ttlSeconds?.({ eventTtlSeconds: options.eventTtlSeconds ?? defaultEventTtlSeconds });
  const expiry = ttlSeconds === undefined ? {} : { ttlSeconds };
  const writeOptions = (ctx: StrategyContext, signal: Cancellation | undefined) => ({
    dryRun: ctx.dryRun,
    ...expiry,
    ...(signal !== undefined && { signal }),
  });
  const remove = newRemove({ definition, strategy, storage, garbageCollection: options.garbageCollection !== false, expiry });

  async function create(ctx: StrategyContext, object: KubeObject, request: StoreCreateOptions): Promise<Entry> {
    const generated = await options.turns.run(beforeCreate(definition, strategy, ctx, object));
    const undo = await strategy.beginCreate?.(object, ctx);
    let entry: Entry;
    try {
      await request.validateAdmission?.(object);
      entry = await createNamed(ctx, object, generated, request.signal);
    } catch (err) {
      await undo?.revert();
      throw err;
    }
    await undo?.commit();
    return entry;
  }

  /** Retries with another name when a generated name is taken. */
  async function createNamed(
    ctx: StrategyContext,
    object: KubeObject,
    generated: boolean,
    signal?: Cancellation,
  ): Promise<Entry> {
    for (let attempt = 1; ; attempt++) {
      const name = object.metadata.name ?? "";
      const key = storageKey(namespaced, ctx.namespace, name);
      try {
        return await storage.create(key, object, writeOptions(ctx, signal));
      } catch (err) {
        if (!isAlreadyExists(err)) throw err;
        if (generated) {
          if (attempt >= generatedNameAttempts) throw generateNameConflict(definition, name, 1);
          object.metadata.name = undefined as never;
          nameObject(object);
          continue;
        }
        throw await explainTaken(key, name, err);
      }
    }
  }

  /** @returns the AlreadyExists error to report; its text says so when the existing object is being deleted */
  async function explainTaken(key: string, name: string, err: unknown): Promise<unknown> {
    const present = await storage.get(key).catch(() => undefined);
    if (!present?.object().metadata.deletionTimestamp) return err;
    const taken = alreadyExists(definition, name);
    taken.status.message = `object is being deleted: ${taken.status.message}`;
    taken.message = taken.status.message;
    return taken;
  }

  async function update(
    ctx: StrategyContext,
    name: string,
    change: (current: KubeObject | undefined) => Promise<KubeObject> | KubeObject,
    request: StoreUpdateOptions,
  ): Promise<{ entry: Entry; created: boolean }> {
    const key = storageKey(namespaced, ctx.namespace, name);
    let created = false;
    let undo: Transaction | undefined;
    /** Set when the update removed the last finalizer: the requested state and the entry it is based on. */
    let last: { object: KubeObject; entry: Entry } | undefined;

    const attempt = async (stored: Entry | undefined): Promise<KubeObject> => {
      await undo?.revert(); // allocations of an attempt that lost a race
      undo = undefined;
      const current = stored?.object();
      if (current === undefined && !whole.allowCreateOnUpdate && !request.forceAllowCreate) throw notFound(definition, name);
      let next = await change(current);
      if (next === current) next = deepClone(next);
      await request.mutateAdmission?.(next, current);
      if (current === undefined) {
        created = true;
        revisionOf(next);
        await options.turns.run(beforeCreate(definition, whole, ctx, next));
        delete next.metadata.resourceVersion;
        undo = await strategy.beginCreate?.(next, ctx);
        await request.validateAdmission?.(next, undefined);
        return next;
      }
      created = false;
      matchRevision(next, current, name);
      await options.turns.run(beforeUpdate(definition, strategy, ctx, next, current));
      keepTimesWhenUnchanged(next, current);
      undo = await strategy.beginUpdate?.(next, current, ctx);
      await request.validateAdmission?.(next, current);
      if (deletesByUpdate(next, current) && (strategy.completesDeletion?.(next) ?? true)) {
        last = { object: next, entry: stored as Entry };
        throw emptiedFinalizers;
      }
      return next;
    };

    /** @returns undefined when the object changed before it could be removed; the caller retries */
    const write = async (): Promise<Entry | undefined> => {
      try {
        return await storage.guaranteedUpdate(key, attempt, {
          ...writeOptions(ctx, request.signal),
          ignoreNotFound: true,
          ...(request.preconditions !== undefined && { preconditions: request.preconditions }),
        });
      } catch (err) {
        if (err !== emptiedFinalizers || last === undefined) throw err;
        return (await deleteWith(ctx, key, last)) ? last.entry.with(last.object) : undefined;
      }
    };
    let entry: Entry | undefined;
    try {
      while (entry === undefined) entry = await write();
    } catch (err) {
      await undo?.revert();
      throw err;
    }
    await undo?.commit();
    return { entry, created };
  }

  /** @throws Conflict when the client's resourceVersion is not the stored one, Invalid when one is required and missing */
  function matchRevision(next: KubeObject, current: KubeObject, name: string): void {
    const wanted = revisionOf(next);
    const present = current.metadata.resourceVersion ?? "";
    if (wanted === 0n) {
      if (whole.allowUnconditionalUpdate === false) {
        // Upstream uses the resource name as the kind here and formats the version as a Go uint64.
        throw invalid({ group: definition.group, kind: definition.resource }, name, [
          invalidValue("metadata.resourceVersion", new GoText("0x0"), "must be specified for an update"),
        ]);
      }
      next.metadata.resourceVersion = present;
    } else if (String(wanted) !== present) throw conflict(definition, name, optimisticLockText);
  }

  /** Completes a deletion after an update removed the last finalizer. @returns false when the object changed since that update */
  async function deleteWith(ctx: StrategyContext, key: string, last: { object: KubeObject; entry: Entry }): Promise<boolean> {
    try {
      await storage.delete(key, {
        preconditions: { resourceVersion: String(last.entry.revision) },
        dryRun: ctx.dryRun,
        suggestion: last.entry,
      });
    } catch (err) {
      if (isNotFound(err)) return true; // a concurrent update also removed the last finalizer
      if (isConflict(err)) return false;
      throw err;
    }
    if (!ctx.dryRun) await strategy.afterDelete?.(last.object, ctx);
    return true;
  }

  async function deleteCollection(
    ctx: StrategyContext,
    deleteOptions: DeleteOptions,
    request: Omit<ListRequest, "prefix">,
    validateAdmission?: (old: KubeObject) => Promise<void>,
  ): Promise<ListResult> {
    const matched = await list(ctx.namespace, request);
    const waiting = matched.entries.values();
    const failures: unknown[] = [];
    const work = async (): Promise<void> => {
      for (const entry of waiting) {
        if (failures.length > 0 || request.signal?.aborted) return;
        const { namespace, name } = splitStorageKey(namespaced, entry.key);
        try {
          // Deletions may modify their options, so each gets a copy.
          await remove({ ...ctx, namespace }, name, { ...deleteOptions }, validateAdmission);
        } catch (err) {
          if (!isNotFound(err)) failures.push(err);
        }
      }
    };
    await Promise.all(Array.from({ length: Math.max(1, options.deleteCollectionWorkers ?? 1) }, work));
    if (failures.length > 0) throw failures[0];
    return matched;
  }

  const list = (namespace: string, request: Omit<ListRequest, "prefix">): Promise<ListResult> =>
    storage.list({ ...request, prefix: storagePrefix(namespaced, namespace, request.fields) });

  return {
    definition,
    storage,
    withStrategy: (other) => storeWith(options, other, storage),
    create,
    async get(namespace, name, read) {
      const entry = await storage.get(storageKey(namespaced, namespace, name), read);
      if (entry === undefined) throw notFound(definition, name);
      return entry;
    },
    list,
    watch: (namespace, request) => storage.watch({ ...request, prefix: storagePrefix(namespaced, namespace, request.fields) }),
    update,
    async delete(ctx, name, deleteOptions, validateAdmission) {
      strategy.checkDeletion?.(name);
      return remove(ctx, name, deleteOptions, validateAdmission);
    },
    deleteCollection,
  };
}

function splitStorageKey(namespaced: boolean, key: string): { namespace: string; name: string } {
  return namespaced ? splitKey(key) : { namespace: "", name: key };
}

/** Thrown inside guaranteedUpdate to stop the write: the update completes a deletion. Never escapes this module. */
const emptiedFinalizers = new Error("the update took away the last finalizer");
