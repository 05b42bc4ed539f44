/**
 * Serves the resources of CustomResourceDefinitions, from the time their names are accepted until they are deleted. When a
 * definition changes, its resources are replaced, which ends existing watches.
 * Source: apiextensions-apiserver pkg/apiserver/customresource_handler.go
 */

import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { deepEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { GroupResource } from "@coxswain/apimachinery/objects/meta/group-version";
import { atOnce, type Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { RegistryStore, ResourceDefinition, ResourceVersionDefinition } from "../registry/generic/resource.ts";
import type { RegistryStoreOptions } from "../registry/generic/store.ts";
import type { EntryMemory } from "../storage/entry.ts";
import type { StoredResource } from "../storage/object-codec.ts";
import type { Storage } from "../storage/storage.ts";
import { compileAhead } from "../structural-schema/rules/rules.ts";
import type { Convert } from "./conversion.ts";
import { type CustomResourceDefinition, isTrue, nameOf } from "./definitions.ts";
import { type ServedVersion, servedVersions, storedResource } from "./served-versions.ts";

/** Registry of the resources that handlers serve. */
interface Catalogue {
  add(definition: ResourceDefinition, version: ResourceVersionDefinition, store: RegistryStore): void;
  remove(group: string, version: string, resource: string): void;
}

export interface ServingOptions {
  readonly definitions: SharedInformer<CustomResourceDefinition>;
  readonly catalogue: Catalogue;
  readonly storage: { for(resource: StoredResource): Storage; release(resource: GroupResource): void };
  readonly storeOptions: Pick<RegistryStoreOptions, "deleteCollectionWorkers" | "garbageCollection">;
  readonly turns: Turns;
  /** Memory accounting of the entries in the served versions. */
  readonly memory: EntryMemory;
  /** Built-in groups: definitions in these are not served. */
  readonly builtInGroups: ReadonlySet<string>;
  readonly converterFor: (definition: CustomResourceDefinition) => Convert;
  readonly featureEnabled: (gate: string) => boolean;
  /** Called for each definition that is served but not yet Established. */
  readonly served: (definition: CustomResourceDefinition) => void;
  readonly log: Logger;
}

interface Serving {
  /** Resolves when the definitions that the informer has delivered are served. */
  settled(): Promise<void>;
  /** The store of a definition in its storage version; undefined when it is not served. */
  storeOf(definition: CustomResourceDefinition): RegistryStore | undefined;
}

/** Definitions of more versions are prepared in several turns. */
const mostAtOnce = 64;

interface Current {
  readonly definition: CustomResourceDefinition;
  readonly versions: readonly ServedVersion[];
}

/** Follows the informer of CustomResourceDefinitions and keeps `catalogue` up to date. */
export function newServing(options: ServingOptions): Serving {
  const { definitions, catalogue, storage, turns, log } = options;
  const current = new Map<string, Current>();
  const validationRules = options.featureEnabled("CustomResourceValidationExpressions");
  let pending: Promise<void> = Promise.resolve();
  /** Compiles validation rules in the background, one definition after the other, so that first writes need not. */
  let ahead = Promise.resolve();

  const withdraw = (name: string): void => {
    for (const { definition, version, close } of current.get(name)?.versions ?? []) {
      catalogue.remove(definition.group, version.version, definition.resource);
      close();
    }
    current.delete(name);
  };
  /** The newest state of each definition that is being prepared; an older one is abandoned. Until then the previous one is served. */
  const preparing = new Map<string, CustomResourceDefinition>();
  const serve = (definition: CustomResourceDefinition): void => {
    const name = nameOf(definition);
    preparing.delete(name);
    if (!isServable(options, definition)) {
      withdraw(name);
      return;
    }
    if (isSame(current.get(name)?.definition, definition)) {
      announce(options, definition);
      return;
    }
    preparing.set(name, definition);
    const failed = (err: unknown): void => {
      log.error("cannot serve a custom resource", err, { definition: name });
      if (preparing.get(name) !== definition) return;
      preparing.delete(name);
      withdraw(name);
    };
    if (definition.spec.versions.length > mostAtOnce) {
      const served = Promise.resolve()
        .then(() => turns.run(prepare(options, definition)))
        .then((versions) => serveAs(definition, versions));
      pending = Promise.all([pending, served.catch(failed)]).then(() => undefined);
      return;
    }
    try {
      serveAs(definition, atOnce(prepare(options, definition)));
    } catch (err) {
      failed(err);
    }
  };
  const serveAs = (definition: CustomResourceDefinition, versions: readonly ServedVersion[]): void => {
    const name = nameOf(definition);
    if (preparing.get(name) !== definition) return; // overtaken; nothing watches its versions yet
    preparing.delete(name);
    withdraw(name);
    current.set(name, { definition, versions });
    for (const one of versions) if (one.served) catalogue.add(one.definition, one.version, one.store);
    if (validationRules) {
      const failed = (err: unknown): void =>
        log.error("cannot precompile the rules of a custom resource", err, { definition: name });
      ahead = ahead.then(() => compileAhead(turns, definition)).catch(failed);
    }
    announce(options, definition);
  };

  definitions.addHandler({
    added: serve,
    updated: (_old, now) => serve(now),
    deleted(last) {
      preparing.delete(nameOf(last));
      withdraw(nameOf(last));
      storage.release({ group: last.spec.group, resource: last.spec.names.plural });
    },
  });
  return {
    settled: () => pending,
    storeOf: (definition) => current.get(nameOf(definition))?.versions.find(({ isStorage }) => isStorage)?.store,
  };
}

function prepare(options: ServingOptions, definition: CustomResourceDefinition): Steps<ServedVersion[]> {
  return servedVersions(definition, {
    base: options.storage.for(storedResource(definition)),
    convert: options.converterFor(definition),
    isTerminating: () => isDeleted(options.definitions.lister.get(nameOf(definition))),
    validationRules: options.featureEnabled("CustomResourceValidationExpressions"),
    storeOptions: options.storeOptions,
    turns: options.turns,
    memory: options.memory,
  });
}

function isServable({ builtInGroups }: ServingOptions, definition: CustomResourceDefinition): boolean {
  const isAccepted = isTrue(definition, "NamesAccepted") || isTrue(definition, "Established");
  return !builtInGroups.has(definition.spec.group) && isAccepted;
}

function announce(options: ServingOptions, definition: CustomResourceDefinition): void {
  if (!isTrue(definition, "Established")) options.served(definition);
}

function isDeleted(definition: CustomResourceDefinition | undefined): boolean {
  return definition === undefined || isTrue(definition, "Terminating");
}

/** Whether two states of a definition are served the same: conditions do not matter. */
function isSame(a: CustomResourceDefinition | undefined, b: CustomResourceDefinition): boolean {
  return (
    a !== undefined &&
    a.metadata.uid === b.metadata.uid &&
    deepEqual(a.spec, b.spec) &&
    deepEqual(a.status?.acceptedNames, b.status?.acceptedNames)
  );
}
