import {
  addErrors,
  child,
  type FieldError,
  forbiddenField,
  index,
  invalidValue,
  mapKey,
  notSupported,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { isJsonObject } from "@coxswain/apimachinery/objects/meta/json-value";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { listMapKeyRules, listRules, typeMustBe } from "./list-types.ts";
import { endsStep, newPace, type Pace } from "./pace.ts";
import { rulesOf, validateRules } from "./rules/rules.ts";
import { additionalOf, hasDefault, isEmbedded, metaFields, mostLevels, type Schema } from "./schema.ts";
import { hasStructureThroughout } from "./structural.ts";

/** Ratcheting: true enables a check; false on updates whose stored definition already violates it. Source: validationOptions */
export interface SchemaOptions {
  readonly validTypes: boolean;
  readonly atomicSets: boolean;
  readonly safeMapKeys: boolean;
}

/** Position of a schema in the definition. */
interface Place {
  readonly options: SchemaOptions;
  /** Why a default is not allowed, for the error text. */
  readonly noDefault?: string;
  /** The schema is inside of the metadata of a resource. */
  readonly insideMeta?: boolean;
  readonly level: number;
  readonly pace: Pace;
}

export const schemaTypes = ["array", "boolean", "integer", "number", "object", "string"];
const mapTypes = ["atomic", "granular"];
const nested = ["allOf", "oneOf", "anyOf"] as const;

/**
 * Validates the keywords of a schema.
 * @param path `spec.validation.openAPIV3Schema`
 * Source: ValidateCustomResourceDefinitionOpenAPISchema
 */
export function* validatingSchema(schema: Schema, path: string, options: SchemaOptions): Steps<FieldError[]> {
  return yield* walk(schema, path, { options, level: 0, pace: newPace() }, true);
}

function* walk(schema: Schema, path: string, place: Place, isRoot = false): Steps<FieldError[]> {
  if (endsStep(place.pace)) yield;
  if (place.level > mostLevels) return [invalidValue(path, "", `schemas cannot be nested deeper than ${mostLevels} levels`)];
  const errors = ownWords(schema, path, place);
  function* below(part: unknown, at: string, special: Partial<Place> = {}): Steps<void> {
    if (isJsonObject(part)) addErrors(errors, yield* walk(part, at, { ...place, ...special, level: place.level + 1 }));
  }
  if (schema.uniqueItems) {
    const text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
    errors.push(forbiddenField(child(path, "uniqueItems"), text));
  }
  const { additionalProperties } = schema;
  if (additionalProperties !== undefined && additionalProperties !== null) {
    const both = Object.keys(schema.properties ?? {}).length > 0 && additionalProperties !== true;
    const at = child(path, "additionalProperties");
    if (both) errors.push(forbiddenField(at, "additionalProperties and properties are mutual exclusive"));
    const why = "inside additionalProperties applying to object metadata";
    yield* below(additionalOf(schema), at, place.insideMeta ? { noDefault: why } : {});
  }
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const ofMeta = (isRoot || isEmbedded(schema)) && metaFields.includes(name);
    yield* below(property, mapKey(child(path, "properties"), name), {
      ...(ofMeta ? { insideMeta: true } : {}),
      ...(ofMeta && isRoot ? { noDefault: `in top-level ${name}` } : {}),
    });
  }
  yield* below(schema.not, child(path, "not"));
  for (const field of nested)
    for (const [i, part] of (schema[field] ?? []).entries()) yield* below(part, index(child(path, field), i));
  for (const [name, part] of Object.entries(schema.definitions ?? {}))
    yield* below(part, mapKey(child(path, "definitions"), name));
  const items = child(path, "items");
  if (Array.isArray(schema.items)) for (const [i, part] of schema.items.entries()) yield* below(part, index(items, i));
  else yield* below(schema.items, items);
  for (const [name, part] of Object.entries(schema.dependencies ?? {}))
    yield* below(part, mapKey(child(path, "dependencies"), name));
  return [...errors, ...extensions(schema, path, place.options, isRoot)];
}

/** OpenAPI keywords that custom resources do not support, and whether a value counts as set. */
const unsupported: readonly [field: string, isSet: (value: unknown) => boolean][] = [
  ["id", (value) => value !== ""],
  ["additionalItems", () => true],
  ["patternProperties", (value) => isJsonObject(value) && Object.keys(value).length > 0],
  ["definitions", (value) => isJsonObject(value) && Object.keys(value).length > 0],
  ["dependencies", () => true],
  ["$ref", () => true],
];

/** Source: specStandardValidatorV3.validate */
function ownWords(schema: Schema, path: string, { options, noDefault, insideMeta }: Place): FieldError[] {
  const errors: FieldError[] = [];
  const { type } = schema;
  const at = (word: string): string => child(path, word);
  if (options.validTypes && type && !schemaTypes.includes(type)) errors.push(notSupported(at("type"), type, schemaTypes));
  if (noDefault !== undefined && hasDefault(schema)) errors.push(forbiddenField(at("default"), `must not be set ${noDefault}`));
  for (const [field, isSet] of unsupported) {
    const value = schema[field];
    if (value !== undefined && value !== null && isSet(value))
      errors.push(forbiddenField(at(field), `${field} is not supported`));
  }
  if (type === "null") errors.push(forbiddenField(at("type"), "type cannot be set to null, use nullable as an alternative"));
  if (Array.isArray(schema.items) && schema.items.length > 0)
    errors.push(forbiddenField(at("items"), "items must be a schema object and not an array"));
  if (insideMeta && isEmbedded(schema))
    errors.push(forbiddenField(at("x-kubernetes-embedded-resource"), "must not be used inside of resource meta"));
  return errors;
}

function extensions(schema: Schema, path: string, options: SchemaOptions, isRoot: boolean): FieldError[] {
  const errors: FieldError[] = [];
  const preserving = "x-kubernetes-preserve-unknown-fields";
  if (schema[preserving] === false) errors.push(invalidValue(child(path, preserving), false, "must be true or undefined"));
  const mapType = schema["x-kubernetes-map-type"];
  if (mapType !== undefined && mapType !== null) {
    if (schema.type !== "object") errors.push(typeMustBe("object", schema, path, "x-kubernetes-map-type"));
    if (!mapTypes.includes(mapType)) errors.push(notSupported(child(path, "x-kubernetes-map-type"), mapType, mapTypes));
  }
  return [
    ...errors,
    ...listRules(schema, path, options.atomicSets),
    ...(rulesOf(schema).length > 0 ? validateRules(schema, path, isRoot, hasStructureThroughout(schema)) : []),
    ...(options.safeMapKeys ? listMapKeyRules(schema, path) : []),
  ];
}
