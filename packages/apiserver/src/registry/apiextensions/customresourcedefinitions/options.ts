import { deepEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { CustomResourceDefinitionSpec } from "@coxswain/apimachinery/objects/schema/kinds/apiextensions/v1";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { type SchemaOptions, schemaTypes } from "../../../structural-schema/keywords.ts";
import { listMapKeyRules, listRules } from "../../../structural-schema/list-types.ts";
import { prune } from "../../../structural-schema/prune.ts";
import { anySchema, hasDefault, type Schema, schemaIn } from "../../../structural-schema/schema.ts";
import { isStructural } from "../../../structural-schema/structural.ts";
import { reviewVersions } from "../../admissionregistration/validation.ts";
import { internalSpecOf, schemasOf } from "./internal.ts";

/** Ratcheting: true enables a check; false on updates whose stored definition already violates it. Source: validationOptions */
export interface Options extends SchemaOptions {
  readonly everySchema: boolean;
  readonly structural: boolean;
  readonly prunedDefaults: boolean;
  readonly knownReviewVersion: boolean;
}

/** All checks, for new definitions. */
export const strict: Options = {
  everySchema: true,
  structural: true,
  prunedDefaults: true,
  knownReviewVersion: true,
  validTypes: true,
  atomicSets: true,
  safeMapKeys: true,
};

/**
 * The checks that a stored definition passes and an update must therefore pass too.
 * Source: requireOpenAPISchema, requireStructuralSchema, requirePrunedDefaults, requireAtomicSetType, …
 */
export function* leniencyOf(spec: CustomResourceDefinitionSpec): Steps<Options> {
  const schemas = schemasIn(spec);
  /** Whether the predicate holds for none of the schemas, at any depth. */
  function* none(is: (schema: Schema) => boolean): Steps<boolean> {
    yield;
    return !schemas.some((schema) => anySchema(schema, is));
  }
  function* areStructural(): Steps<boolean> {
    for (const schema of schemas) if (!(yield* isStructural(schema))) return false;
    return true;
  }
  const reviews = spec.conversion?.webhook?.conversionReviewVersions ?? [];
  return {
    everySchema: (spec.versions ?? []).every((version) => version.schema?.openAPIV3Schema),
    structural: yield* areStructural(),
    prunedDefaults: yield* none((schema) => hasDefault(schema) && !deepEqual(prune(schema.default, schema), schema.default)),
    knownReviewVersion: reviews.length === 0 || reviews.some((version) => reviewVersions.includes(version)),
    validTypes: yield* none(({ type }) => Boolean(type) && !schemaTypes.includes(type!)),
    atomicSets: yield* none((schema) => listRules(schema, "", true).length > listRules(schema, "", false).length),
    safeMapKeys: yield* none((schema) => listMapKeyRules(schema, "").length > 0),
  };
}

/**
 * Requires structural schemas regardless of ratcheting when objects are pruned or defaulted or the schema uses extensions.
 * Source: validateCustomResourceDefinitionSpec
 */
export function optionsFor(spec: CustomResourceDefinitionSpec, options: Options): Options {
  const isExtended = schemasIn(spec).some((schema) => anySchema(schema, hasExtension));
  return { ...options, structural: options.structural || !spec.preserveUnknownFields || hasDefaults(spec) || isExtended };
}

/** Whether any schema of any version declares a default, at any depth. */
export function hasDefaults(spec: CustomResourceDefinitionSpec): boolean {
  return schemasIn(spec).some((schema) => anySchema(schema, hasDefault));
}

function schemasIn(spec: CustomResourceDefinitionSpec): Schema[] {
  return schemasOf(internalSpecOf(spec))
    .map(schemaIn)
    .filter((schema) => schema !== undefined);
}

/** Kubernetes extensions that require a structural schema; upstream leaves out map-type. Source: schemaHasKubernetesExtensions */
const extensionWords = ["embedded-resource", "int-or-string", "list-map-keys", "list-type", "validations"];

function hasExtension(schema: Schema): boolean {
  const preserving = schema["x-kubernetes-preserve-unknown-fields"];
  if (preserving !== undefined && preserving !== null) return true;
  return extensionWords.some((word) => {
    const value = schema[`x-kubernetes-${word}`];
    return Array.isArray(value) ? value.length > 0 : Boolean(value);
  });
}
