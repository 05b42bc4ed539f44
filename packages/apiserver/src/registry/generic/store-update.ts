import { invalidValue } from "@coxswain/apimachinery/objects/errors/field-error";
import { GoText } from "@coxswain/apimachinery/objects/errors/go-syntax";
import { isConflict, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { conflict, invalid, notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import { deepClone } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Entry, Storage, WriteOptions } from "../../storage/storage.ts";
import { beforeCreate } from "./before-create.ts";
import { beforeUpdate } from "./before-update.ts";
import { deletesByUpdate } from "./graceful-delete.ts";
import { keepTimesWhenUnchanged } from "./managed-times.ts";
import type { ResourceDefinition, StoreUpdateOptions } from "./resource.ts";
import { revisionOf } from "./revision.ts";
import type { Strategy, StrategyContext, Transaction } from "./strategy.ts";

const optimisticLockText = "the object has been modified; please apply your changes to the latest version and try again";

interface StoreUpdateContext {
  readonly definition: ResourceDefinition;
  readonly storage: Storage;
  readonly strategy: Strategy;
  /** The resource's strategy, from which those of its subresources inherit whether an update may create or omit the revision. */
  readonly whole: Strategy;
  readonly turns: Turns;
  readonly ctx: StrategyContext;
  readonly name: string;
  readonly key: string;
  /** May run several times; `current` is undefined when the object is absent. */
  change(current: KubeObject | undefined): Promise<KubeObject> | KubeObject;
  /** false: the object is stored without `metadata.managedFields`. */
  readonly tracked: boolean;
  readonly request: StoreUpdateOptions;
  readonly writeOptions: WriteOptions;
}

/** One update of one object: repeated on conflicts, and turned into a deletion when it removes the last finalizer. */
export class StoreUpdate {
  readonly #context: StoreUpdateContext;
  #created = false;
  /** Resources that the strategy has allocated for the current attempt. */
  #undo: Transaction | undefined;
  /** Set when the update removed the last finalizer: the requested state and the entry it is based on. */
  #last: { readonly object: KubeObject; readonly entry: Entry } | undefined;

  constructor(context: StoreUpdateContext) {
    this.#context = context;
  }

  /**
   * @returns the stored entry, or the last state of an object that the update has removed
   * @throws NotFound, Conflict, Invalid, or what admission throws; allocations are reverted then
   */
  async run(): Promise<{ entry: Entry; created: boolean }> {
    let entry: Entry | undefined;
    try {
      while (entry === undefined) entry = await this.#write();
    } catch (err) {
      await this.#undo?.revert();
      throw err;
    }
    await this.#undo?.commit();
    return { entry, created: this.#created };
  }

  /** @returns undefined when the object changed before it could be removed; the caller retries */
  async #write(): Promise<Entry | undefined> {
    const { storage, writeOptions, request } = this.#context;
    try {
      return await storage.guaranteedUpdate(this.#context.key, (stored) => this.#attempt(stored), {
        ...writeOptions,
        ignoreNotFound: true,
        ...(request.preconditions !== undefined && { preconditions: request.preconditions }),
      });
    } catch (err) {
      if (err !== emptiedFinalizers || this.#last === undefined) throw err;
      return (await this.#remove(this.#last)) ? this.#last.entry.with(this.#last.object) : undefined;
    }
  }

  async #attempt(stored: Entry | undefined): Promise<KubeObject> {
    const { definition, strategy, whole, ctx, name, change, tracked, request } = this.#context;
    await this.#undo?.revert(); // allocations of an attempt that lost a race
    this.#undo = undefined;
    const current = stored?.object();
    if (current === undefined && !whole.allowCreateOnUpdate && !request.forceAllowCreate) throw notFound(definition, name);
    let next = await change(current);
    if (next === current) next = deepClone(next);
    if (!tracked) delete next.metadata.managedFields;
    await request.mutateAdmission?.(next, current);
    if (current === undefined) return this.#createInstead(next);
    this.#created = false;
    this.#matchRevision(next, current);
    await this.#context.turns.run(beforeUpdate(definition, strategy, ctx, next, current), stored?.smallBytes, request.signal);
    keepTimesWhenUnchanged(next, current);
    this.#undo = await strategy.beginUpdate?.(next, current, ctx);
    await request.validateAdmission?.(next, current);
    if (deletesByUpdate(next, current) && (strategy.completesDeletion?.(next) ?? true)) {
      this.#last = { object: next, entry: stored! };
      throw emptiedFinalizers;
    }
    return next;
  }

  async #createInstead(next: KubeObject): Promise<KubeObject> {
    const { definition, strategy, whole, ctx, request } = this.#context;
    this.#created = true;
    revisionOf(next);
    await this.#context.turns.run(beforeCreate(definition, whole, ctx, next), 0, request.signal);
    delete next.metadata.resourceVersion;
    this.#undo = await strategy.beginCreate?.(next, ctx);
    await request.validateAdmission?.(next, undefined);
    return next;
  }

  /** @throws Conflict when the client's resourceVersion is not the stored one, Invalid when one is required and missing */
  #matchRevision(next: KubeObject, current: KubeObject): void {
    const { definition, whole, name } = this.#context;
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

  /** Completes a deletion after the update removed the last finalizer. @returns false when the object changed since that update */
  async #remove(last: { readonly object: KubeObject; readonly entry: Entry }): Promise<boolean> {
    const { storage, strategy, ctx } = this.#context;
    try {
      await storage.delete(this.#context.key, {
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
}

/** Thrown inside guaranteedUpdate to stop the write: the update completes a deletion. Never escapes this module. */
const emptiedFinalizers = new Error("the update removed the last finalizer");
