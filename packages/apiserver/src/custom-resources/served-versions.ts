/**
 * Resource definitions and stores of a CustomResourceDefinition: one per version, all over the same stored objects.
 * Source: apiextensions-apiserver pkg/apiserver/customresource_handler.go getOrCreateServingInfoFor
 */
import { methodNotSupported } from "@coxswain/apimachinery/objects/errors/status-error";
import { compareKubeVersions } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { type ApplySchema, applyTypeOfSchema } from "@coxswain/apimachinery/objects/patch/apply/schema-type";
import type {
  CustomResourceDefinitionNames,
  CustomResourceDefinitionVersion,
} from "@coxswain/apimachinery/objects/schema/kinds/apiextensions/v1";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { RegistryStore, ResourceDefinition, ResourceVersionDefinition } from "../registry/generic/resource.ts";
import { newRegistryStore, type RegistryStoreOptions } from "../registry/generic/store.ts";
import type { EntryMemory } from "../storage/entry.ts";
import { newObjectCodec } from "../storage/object-codec.ts";
import type { Storage } from "../storage/storage.ts";
import { applySchema, applySchemaInSteps, type SchemaApplication } from "../structural-schema/apply.ts";
import { unknownFields } from "../structural-schema/prune.ts";
import { ruleCheckOf } from "../structural-schema/rules/evaluation.ts";
import { schemaIn } from "../structural-schema/schema.ts";
import { isStructural } from "../structural-schema/structural.ts";
import { columnsOf } from "./columns.ts";
import { type Convert, newTranslation } from "./conversion.ts";
import { type CustomResourceDefinition, isNamespaced, statusOf } from "./definitions.ts";
import { scalePathsOf } from "./scale-paths.ts";
import { customResourceStatusStrategy, customResourceStrategy } from "./strategy.ts";
import { newVersionStorage } from "./version-storage.ts";

/** One version of a custom resource with its store. */
export interface ServedVersion {
  readonly definition: ResourceDefinition;
  readonly version: ResourceVersionDefinition;
  readonly store: RegistryStore;
  /** false: not served to clients; only used internally (finalizer). */
  readonly served: boolean;
  readonly isStorage: boolean;
  /** Ends the watches of this version. */
  close(): void;
}

export interface ServedVersionsOptions {
  readonly base: Storage;
  readonly convert: Convert;
  /** Called for each request and discovery: the start of a deletion does not recreate the served versions. */
  readonly isTerminating: () => boolean;
  /** Whether `x-kubernetes-validations` rules are enforced (CustomResourceValidationExpressions). */
  readonly validationRules: boolean;
  readonly storeOptions: Pick<RegistryStoreOptions, "deleteCollectionWorkers" | "garbageCollection">;
  readonly turns: Turns;
  /** Memory accounting of the entries in the served versions. */
  readonly memory: EntryMemory;
}

/** Verbs in discovery, in upstream's order. */
const verbs = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
const terminatingVerbs = ["delete", "deletecollection", "get", "list", "watch"];

function namesOf(crd: CustomResourceDefinition): CustomResourceDefinitionNames {
  const { acceptedNames } = statusOf(crd);
  return acceptedNames.kind === "" ? crd.spec.names : acceptedNames;
}

/** The resource of the underlying storage that all versions share. */
export function storedResource(crd: CustomResourceDefinition) {
  const { kind } = namesOf(crd);
  return {
    group: crd.spec.group,
    resource: crd.spec.names.plural,
    kind,
    namespaced: isNamespaced(crd),
    hub: storageVersionOf(crd),
    versions: [],
    keepsVersions: true,
  } as const;
}

function storageVersionOf({ spec }: CustomResourceDefinition): string {
  return spec.versions.find(({ storage }) => storage)?.name ?? "";
}

/** Versions between two yields: the store of one takes about 0.05 ms. */
const versionsPerStep = 64;

/**
 * Stores and definitions of all versions, served or not, in steps for many versions.
 * @throws Error for an invalid JSONPath of a printer column
 */
export function* servedVersions(crd: CustomResourceDefinition, options: ServedVersionsOptions): Steps<ServedVersion[]> {
  const { spec } = crd;
  const { turns } = options;
  const storageVersion = storageVersionOf(crd);
  const schemas = new Map(spec.versions.map((version) => [version.name, applicationOf(crd, version)]));
  const deprecationOf = deprecationsOf(crd);
  const versions = spec.versions.map((version) =>
    versionDefinition(crd, version, schemas.get(version.name)!, options.convert, deprecationOf),
  );
  const served: ServedVersion[] = [];
  for (const [i, version] of spec.versions.entries()) {
    if (i % versionsPerStep === versionsPerStep - 1) yield;
    const definition = { ...resourceOf(crd, version, storageVersion, options), versions };
    const translation = newTranslation({
      group: spec.group,
      schemas,
      version: version.name,
      storageVersion,
      convert: options.convert,
      turns,
    });
    const storage = newVersionStorage(
      options.base,
      // It sees objects of this version only. With all versions, many of them would take quadratic time and memory.
      newObjectCodec({ ...definition, versions: [] }, "application/json", options.memory),
      translation,
      turns,
    );
    served.push({
      definition,
      version: versions[i]!,
      store: newRegistryStore({ definition, storage, turns, ...options.storeOptions }),
      served: version.served,
      isStorage: version.storage,
      close: () => storage.close(),
    });
  }
  return served;
}

function applicationOf({ spec }: CustomResourceDefinition, { schema }: CustomResourceDefinitionVersion): SchemaApplication {
  return { schema: schemaIn(schema), prunes: spec.preserveUnknownFields !== true };
}

function versionDefinition(
  crd: CustomResourceDefinition,
  version: CustomResourceDefinitionVersion,
  application: SchemaApplication,
  convert: Convert,
  deprecationOf: (deprecated: string) => string,
): ResourceVersionDefinition {
  const { schema, prunes } = application;
  const known = { type: "object", ...schema, ...(!prunes || schema === undefined ? preserving : {}) };
  const warning = version.deprecated ? (version.deprecationWarning ?? deprecationOf(version.name)) : undefined;
  return {
    version: version.name,
    defaults: (object) => applySchema(object, application),
    defaultsInSteps: (object) => applySchemaInSteps(object, application),
    // Each takes tens of milliseconds for a large schema, so it is computed at its first use, not when the definition is served.
    applyType: once(() => applyTypeOfSchema(known as ApplySchema)), // cast: `ApplySchema` names those keywords of a schema that are read
    published: onceInSteps(function* () {
      return { schema: schema && (yield* isStructural(schema)) ? schema : undefined, preserving: !prunes };
    }),
    ...(prunes && { unknownFields: (object: object) => unknownFields(object, schema) }),
    ...(crd.spec.conversion?.strategy === "Webhook" && {
      convert: async (object: KubeObject, apiVersion: string) => (await convert([object], apiVersion))[0]!,
    }),
    ...(warning !== undefined && { deprecation: warning }),
  };
}

function once<T>(workOut: () => T): () => T {
  let known: { readonly value: T } | undefined;
  return () => {
    known ??= { value: workOut() };
    return known.value;
  };
}

/** As `once`, for a computation in steps. Concurrent first calls each run the computation. */
function onceInSteps<T>(workOut: () => Steps<T>): () => Steps<T> {
  let known: { readonly value: T } | undefined;
  return function* () {
    known ??= { value: yield* workOut() };
    return known.value;
  };
}

const preserving = { "x-kubernetes-preserve-unknown-fields": true };

/** Returns the default warning of a deprecated version. Source: defaultDeprecationWarning */
function deprecationsOf({ spec }: CustomResourceDefinition): (deprecated: string) => string {
  const { group, names, versions } = spec;
  // The best of all versions is also the best of those that are better than the deprecated one.
  const [best] = versions
    .filter((version) => version.served && !version.deprecated)
    .map(({ name }) => name)
    .sort(compareKubeVersions);
  return (deprecated) => {
    const text = `${group}/${deprecated} ${names.kind} is deprecated`;
    const isBetter = best !== undefined && compareKubeVersions(best, deprecated) < 0;
    return isBetter ? `${text}; use ${group}/${best} ${names.kind}` : text;
  };
}

function resourceOf(
  crd: CustomResourceDefinition,
  version: CustomResourceDefinitionVersion,
  storageVersion: string,
  { isTerminating, validationRules }: ServedVersionsOptions,
): Omit<ResourceDefinition, "versions"> {
  const { group } = crd.spec;
  const { plural } = crd.spec.names;
  const { kind, listKind, singular, shortNames, categories } = namesOf(crd);
  const { status, scale } = version.subresources ?? {};
  const schema = schemaIn(version.schema);
  const input = {
    namespaced: isNamespaced(crd),
    schema,
    checkRules: validationRules ? ruleCheckOf(schema) : undefined,
    hasStatus: Boolean(status),
    scale: scale ?? undefined,
  };
  return {
    group,
    resource: plural,
    kind,
    listKind: listKind ?? `${kind}List`,
    singular: singular ?? "",
    namespaced: input.namespaced,
    ...(shortNames !== undefined && { shortNames }),
    ...(categories !== undefined && { categories }),
    verbs,
    announcedVerbs: () => (isTerminating() ? terminatingVerbs : verbs),
    refusal(verb) {
      if (verb !== "create" || !isTerminating()) return undefined;
      const refused = methodNotSupported({ group, resource: plural }, verb);
      refused.status.message = `${verb} not allowed while custom resource definition is terminating`;
      refused.message = refused.status.message;
      return refused;
    },
    hub: version.name,
    storage: { group, version: storageVersion },
    strategy: customResourceStrategy(input),
    ...(input.hasStatus && { statusStrategy: customResourceStatusStrategy(input) }),
    ...(input.scale !== undefined && { scale: scalePathsOf(input.scale) }),
    table: columnsOf(version.additionalPrinterColumns),
    unknownFieldText: (field) => `field label not supported: ${field}`,
    custom: true,
    itemsKeepKind: true,
  };
}
