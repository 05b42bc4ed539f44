import { isJsonObject } from "@coxswain/apimachinery/objects/meta/json-value";
import type { CustomResourceValidation, JSONSchemaProps } from "@coxswain/apimachinery/objects/schema/kinds/apiextensions/v1";

/** A JSONSchemaProps with its keywords accessible by JSON name. */
export type Schema = Omit<
  JSONSchemaProps,
  "items" | "additionalProperties" | "properties" | "not" | "allOf" | "anyOf" | "oneOf"
> & {
  readonly items?: Schema | Schema[];
  readonly additionalProperties?: Schema | boolean;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly not?: Schema;
  readonly allOf?: Schema[];
  readonly anyOf?: Schema[];
  readonly oneOf?: Schema[];
} & Readonly<Record<string, unknown>>;

/** The schema of a version, if it has one, for reading by keyword. Cast: an interface has no index signature, the JSON value has names. */
export const schemaIn = (validation: CustomResourceValidation | undefined): Schema | undefined =>
  validation?.openAPIV3Schema as Schema | undefined;

/** Maximum nesting of schemas; validation rejects deeper ones before other code walks them. */
export const mostLevels = 200;

/** The fields that every resource has, whether or not its schema mentions them. */
export const metaFields: readonly string[] = ["metadata", "kind", "apiVersion"];

/** The schema of list items; undefined when there is none or when `items` is a list of schemas. */
export function itemsOf(schema: Schema): Schema | undefined {
  return isJsonObject(schema.items) ? schema.items : undefined;
}

/** The schema of `additionalProperties`; undefined when it is absent or a boolean. */
export function additionalOf(schema: Schema): Schema | undefined {
  return isJsonObject(schema.additionalProperties) ? schema.additionalProperties : undefined;
}

/** The schema of a property; ignores inherited names such as `constructor`. */
export function propertyOf(schema: Schema | undefined, name: string): Schema | undefined {
  return Object.hasOwn(schema?.properties ?? {}, name) ? schema?.properties?.[name] : undefined;
}

/** Whether a schema describes nested values; false for scalars, whose values need not be walked. */
export function hasInside(schema: Schema): boolean {
  return isJsonObject(schema.items) || isJsonObject(schema.additionalProperties) || isJsonObject(schema.properties);
}

/** The fields of an object that have a schema, in the object's order. */
export function* knownFields(
  value: Readonly<Record<string, unknown>>,
  schema: Schema,
): Generator<readonly [name: string, schema: Schema, isAdditional: boolean]> {
  const additional = additionalOf(schema);
  if (additional === undefined && !isJsonObject(schema.properties)) return;
  for (const name of Object.keys(value)) {
    const property = propertyOf(schema, name);
    if (property !== undefined) yield [name, property, false];
    else if (additional !== undefined) yield [name, additional, true];
  }
}

const listWords = new Set(["allOf", "anyOf", "oneOf", "items", "not", "additionalItems", "additionalProperties"]);
const mapWords = new Set(["properties", "patternProperties", "definitions", "dependencies"]);

/** Direct subschemas of all kinds. */
function partsOf(schema: Schema): Schema[] {
  const parts: Schema[] = [];
  const add = (part: unknown): void => {
    if (isJsonObject(part)) parts.push(part);
  };
  // Iterates over the keywords that are set: most schemas have few.
  for (const word of Object.keys(schema)) {
    const value = schema[word];
    if (typeof value !== "object" || value === null) continue;
    if (mapWords.has(word))
      for (const name of Object.keys(value)) add((value as Record<string, unknown>)[name]); // cast: read by its own keys
    else if (listWords.has(word)) Array.isArray(value) ? value.forEach(add) : add(value);
  }
  return parts;
}

/** A schema and all of its subschemas, up to `mostLevels`. */
export function* schemasWithin(schema: Schema, level = 0): Generator<Schema> {
  yield schema;
  if (level < mostLevels) for (const part of partsOf(schema)) yield* schemasWithin(part, level + 1);
}

/** Number of schemas, including the schema itself. */
export function sizeOf(schema: Schema): number {
  return partsOf(schema).reduce((size, part) => size + sizeOf(part), 1);
}

/** Whether the predicate holds for a schema or any of its subschemas. Source: SchemaHas */
export function anySchema(schema: Schema, is: (schema: Schema) => boolean, level = 0): boolean {
  return is(schema) || (level <= mostLevels && partsOf(schema).some((part) => anySchema(part, is, level + 1)));
}

/** A default of null counts as none. */
export function hasDefault(schema: Schema): boolean {
  return schema.default !== undefined && schema.default !== null;
}

/** Whether values of the schema are resources: apiVersion, kind and metadata are implicit. */
export function isEmbedded(schema: Schema): boolean {
  return schema["x-kubernetes-embedded-resource"] === true;
}

/** Whether fields that are not in the schema are kept. */
export function isPreserving(schema: Schema): boolean {
  return schema["x-kubernetes-preserve-unknown-fields"] === true;
}

/** Caches a computation per schema object, so that it runs once and not once per value. */
export function perSchema<T extends object>(workOut: (schema: Schema) => T): (schema: Schema) => T {
  const known = new WeakMap<Schema, T>();
  return (schema) => {
    const found = known.get(schema) ?? workOut(schema);
    known.set(schema, found);
    return found;
  };
}
