import {
  addErrors,
  child,
  type FieldError,
  forbiddenField,
  formatFieldError,
  index,
  invalidValue,
  mapKey,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { deepEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { isJsonObject } from "@coxswain/apimachinery/objects/meta/json-value";
import { PatternError } from "@coxswain/apimachinery/objects/validation/pattern";
import { type Steps, sortedInSteps } from "@coxswain/apimachinery/process/event-loop/steps";
import { endsStep, newPace, type Pace } from "./pace.ts";
import { patternOf } from "./patterns.ts";
import { additionalOf, anySchema, hasInside, itemsOf, mostLevels, propertyOf, type Schema } from "./schema.ts";

type Level = "root" | "item" | "field";

const emptyTypeTexts: Readonly<Record<Level, string>> = {
  root: "must not be empty at the root",
  item: "must not be empty for specified array items",
  field: "must not be empty for specified object fields",
};

/** Whether objects can be pruned and defaulted by the schema. */
export function* isStructural(schema: Schema): Steps<boolean> {
  const isThroughout = hasStructureThroughout(schema);
  yield;
  return isThroughout && (yield* validatingStructural(schema, "")).length === 0;
}

/**
 * False when a schema has keywords that cannot be converted to a structural schema; validation reports those separately.
 * Source: pkg/apiserver/schema/convert.go NewStructural
 */
export function hasStructureThroughout(schema: Schema): boolean {
  return !anySchema(schema, (part) => !hasStructure(part));
}

function hasStructure(schema: Schema): boolean {
  const filled = (value: unknown): boolean => isJsonObject(value) && Object.keys(value).length > 0;
  return !(
    schema.id ||
    schema.$schema ||
    schema.$ref ||
    filled(schema.patternProperties) ||
    filled(schema.dependencies) ||
    (schema.additionalItems !== undefined && schema.additionalItems !== null) ||
    filled(schema.definitions) ||
    (Array.isArray(schema.items) && schema.items.length > 0) ||
    schema["x-kubernetes-preserve-unknown-fields"] === false
  );
}

/**
 * Checks that a schema is structural: types and structure are specified outside of logical operators, as pruning and
 * defaulting require. Schemas nested too deeply are not followed; `validatingSchema` rejects them.
 * @returns errors sorted by their text
 * Source: apiextensions-apiserver pkg/apiserver/schema/validation.go ValidateStructural, complete.go
 */
export function* validatingStructural(schema: Schema, path: string): Steps<FieldError[]> {
  const pace = newPace();
  const found = yield* invariants(schema, "root", path, 0, pace);
  yield;
  addErrors(found, yield* complete(schema, schema, path, { outerPath: path, depth: 0, pace }));
  const text = new Map(found.map((error) => [error, formatFieldError(error)]));
  return yield* sortedInSteps(found, (a, b) => (text.get(a)! < text.get(b)! ? -1 : 1));
}

function* invariants(schema: Schema, level: Level, path: string, depth: number, pace: Pace): Steps<FieldError[]> {
  if (depth > mostLevels) return [];
  const items = itemsOf(schema);
  const additional = additionalOf(schema);
  const { properties = {}, additionalProperties } = schema;
  const errors: FieldError[] = [];
  if (items) addErrors(errors, yield* invariants(items, "item", child(path, "items"), depth + 1, pace));
  const below = child(path, "properties");
  for (const name of Object.keys(properties ?? {})) {
    const property = properties[name]!;
    const at = mapKey(below, name);
    // Most parts of a large schema have none below them.
    if (hasInside(property)) addErrors(errors, yield* invariants(property, "field", at, depth + 1, pace));
    else if (depth < mostLevels) addErrors(errors, yield* ownInvariants(property, "field", at, depth + 1, pace));
    if (endsStep(pace)) yield;
  }
  const at = child(path, "additionalProperties");
  if (level === "root" && additionalProperties !== undefined && additionalProperties !== null)
    errors.push(forbiddenField(at, "must not be used at the root"));
  if (additional) addErrors(errors, yield* invariants(additional, "field", at, depth + 1, pace));
  return [...errors, ...(yield* ownInvariants(schema, level, path, depth, pace))];
}

/** The invariants of one schema, without those below it. */
function* ownInvariants(schema: Schema, level: Level, path: string, depth: number, pace: Pace): Steps<FieldError[]> {
  const lacksItems = schema.type === "array" && !itemsOf(schema);
  return [
    ...(lacksItems ? [required(child(path, "items"), "must be specified")] : []),
    ...extensionRules(schema, path),
    ...(yield* valueRules(schema, path, depth, pace, {
      anyOf: deepEqual(schema.anyOf, integerOrString),
      allOf: deepEqual(schema.allOf?.[0]?.anyOf, integerOrString),
    })),
    ...typeRules(schema, level, path),
    ...metaRules(schema, level, path),
  ];
}

const isSet = (schema: Schema, word: `x-kubernetes-${string}`): boolean => schema[word] === true;

function extensionRules(schema: Schema, path: string): FieldError[] {
  if (!isSet(schema, "x-kubernetes-int-or-string")) return [];
  return (["preserve-unknown-fields", "embedded-resource"] as const)
    .filter((word) => isSet(schema, `x-kubernetes-${word}`))
    .map((word) =>
      invalidValue(child(path, `x-kubernetes-${word}`), true, "must be false if x-kubernetes-int-or-string is true"),
    );
}

function typeRules(schema: Schema, level: Level, path: string): FieldError[] {
  const at = child(path, "type");
  const { type } = schema;
  const embedded = isSet(schema, "x-kubernetes-embedded-resource");
  const errors: FieldError[] = [];
  if (embedded && type !== "object") {
    const text = "must be object if x-kubernetes-embedded-resource is true";
    errors.push(type ? invalidValue(at, type, text) : required(at, text));
  } else if (!type && !isSet(schema, "x-kubernetes-int-or-string") && !isSet(schema, "x-kubernetes-preserve-unknown-fields")) {
    errors.push(required(at, emptyTypeTexts[level]));
  }
  if (embedded && schema.additionalProperties !== undefined && schema.additionalProperties !== null) {
    const text = "must not be used if x-kubernetes-embedded-resource is set";
    errors.push(forbiddenField(child(path, "additionalProperties"), text));
  }
  if (level === "root" && type && type !== "object") errors.push(invalidValue(at, type, "must be object at the root"));
  return errors;
}

/** apiVersion, kind and metadata are implicit: their types are fixed, and metadata may only restrict name and generateName. */
function metaRules(schema: Schema, level: Level, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const embedded = isSet(schema, "x-kubernetes-embedded-resource");
  const isResource = level === "root" || embedded;
  for (const [name, type] of [
    ["kind", "string"],
    ["apiVersion", "string"],
    ["metadata", "object"],
  ] as const) {
    const property = propertyOf(schema, name);
    const at = mapKey(child(path, "properties"), name);
    if (property && isResource && property.type !== type)
      errors.push(invalidValue(child(at, "type"), property.type ?? "", `must be ${type}`));
    if (name === "metadata" && property && level === "root" && !restrictsNamesAlone(property)) {
      const text = "must not specify anything other than name and generateName, but metadata is implicitly specified";
      errors.push(forbiddenField(at, text));
    }
  }
  if (embedded && !isSet(schema, "x-kubernetes-preserve-unknown-fields") && Object.keys(schema.properties ?? {}).length === 0) {
    const text = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
    errors.push(required(child(path, "properties"), text));
  }
  return errors;
}

/** Keywords that are not part of the structural schema or are checked elsewhere. */
const elsewhere = ["type", "default", "externalDocs", "example"];

/** Keywords for which an empty schema counts as set. */
const pointers = ["additionalProperties", "items", "not"];

function restrictsNamesAlone(metadata: Schema): boolean {
  return Object.entries(metadata).every(([word, value]) => {
    if (elsewhere.includes(word) || (pointers.includes(word) ? value === undefined || value === null : isEmpty(value)))
      return true;
    // Cast: `properties` is an object in a decoded schema.
    return word === "properties" && Object.keys(value as object).every((name) => name === "name" || name === "generateName");
  });
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === "" || value === false) return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}

const integerOrString = [{ type: "integer" }, { type: "string" }];

/** Places where upstream allows `anyOf` of types integer and string, for x-kubernetes-int-or-string. */
interface TypedOperators {
  /** anyOf of the schema itself. */
  readonly anyOf?: boolean;
  /** anyOf of the first schema in its allOf. */
  readonly allOf?: boolean;
}

/** Checks logical operators and the pattern of one schema. */
function* valueRules(schema: Schema, path: string, depth: number, pace: Pace, typed: TypedOperators): Steps<FieldError[]> {
  const errors: FieldError[] = [];
  if (!typed.anyOf)
    for (const [i, part] of (schema.anyOf ?? []).entries())
      addErrors(errors, yield* restriction(part, index(child(path, "anyOf"), i), depth + 1, pace));
  for (const [i, part] of (schema.allOf ?? []).entries()) {
    const anyOf = i === 0 && typed.allOf === true;
    addErrors(errors, yield* restriction(part, index(child(path, "allOf"), i), depth + 1, pace, { anyOf }));
  }
  for (const [i, part] of (schema.oneOf ?? []).entries())
    addErrors(errors, yield* restriction(part, index(child(path, "oneOf"), i), depth + 1, pace));
  if (isJsonObject(schema.not)) addErrors(errors, yield* restriction(schema.not, child(path, "not"), depth + 1, pace));
  const pattern = patternOf(schema);
  if (pattern instanceof PatternError) {
    const text = `must be a valid regular expression, but isn't: ${pattern.message}`;
    errors.push(invalidValue(child(path, "pattern"), schema.pattern, text));
  }
  return errors;
}

/** Keywords that are not allowed inside of logical operators, with the word of the error text for the allowed value. */
const structuralWords: readonly [word: string, empty: "empty" | "undefined" | "false"][] = [
  ["type", "empty"],
  ["additionalProperties", "undefined"],
  ["default", "undefined"],
  ["title", "empty"],
  ["description", "empty"],
  ["nullable", "false"],
  ["x-kubernetes-preserve-unknown-fields", "false"],
  ["x-kubernetes-embedded-resource", "false"],
  ["x-kubernetes-int-or-string", "false"],
  ["x-kubernetes-list-map-keys", "empty"],
  ["x-kubernetes-list-type", "undefined"],
  ["x-kubernetes-map-type", "undefined"],
  ["x-kubernetes-validations", "empty"],
];

function* restriction(part: Schema, path: string, depth: number, pace: Pace, typed: TypedOperators = {}): Steps<FieldError[]> {
  if (depth > mostLevels || !isJsonObject(part)) return [];
  if (endsStep(pace)) yield;
  const errors = yield* valueRules(part, path, depth, pace, typed);
  const items = itemsOf(part);
  if (items) addErrors(errors, yield* restriction(items, child(path, "items"), depth + 1, pace));
  for (const [name, property] of Object.entries(part.properties ?? {}))
    addErrors(errors, yield* restriction(property, mapKey(child(path, "properties"), name), depth + 1, pace));
  for (const [word, empty] of structuralWords) {
    const value = part[word];
    const passes = empty === "undefined" ? value === undefined || value === null : isEmpty(value);
    if (!passes) errors.push(forbiddenField(child(path, word), `must be ${empty} to be structural`));
  }
  if (propertyOf(part, "metadata"))
    errors.push(forbiddenField(child(path, "properties[metadata]"), "must not be specified in a nested context"));
  return errors;
}

interface Outside {
  /** Path of the schema outside of the operators. */
  readonly outerPath: string;
  readonly depth: number;
  readonly pace: Pace;
}

/** Every field mentioned inside of operators must also be specified outside. @param outer the schema outside of the operators */
function* complete(part: Schema, outer: Schema, path: string, outside: Outside): Steps<FieldError[]> {
  const errors: FieldError[] = [];
  if (outside.depth > mostLevels) return errors;
  const inside = { ...outside, depth: outside.depth + 1 };
  if (isJsonObject(part.not)) addErrors(errors, yield* completeBelow(part.not, outer, child(path, "not"), inside));
  for (const field of ["allOf", "anyOf", "oneOf"] as const)
    for (const [i, operand] of (part[field] ?? []).entries())
      addErrors(errors, yield* completeBelow(operand, outer, index(child(path, field), i), inside));
  return errors;
}

function* completeBelow(part: Schema, outer: Schema, path: string, outside: Outside): Steps<FieldError[]> {
  const { outerPath, depth, pace } = outside;
  if (depth > mostLevels || !isJsonObject(part)) return [];
  if (endsStep(pace)) yield;
  const errors = yield* complete(part, outer, path, outside);
  function* below(inner: Schema, known: Schema | undefined, step: (path: string) => string): Steps<void> {
    if (!known) errors.push(required(step(outerPath), `because it is defined in ${step(path)}`));
    else
      addErrors(errors, yield* completeBelow(inner, known, step(path), { outerPath: step(outerPath), depth: depth + 1, pace }));
  }
  const items = itemsOf(part);
  if (items) yield* below(items, itemsOf(outer), (at) => child(at, "items"));
  for (const [name, property] of Object.entries(part.properties ?? {}))
    yield* below(property, propertyOf(outer, name), (at) => mapKey(child(at, "properties"), name));
  return errors;
}
