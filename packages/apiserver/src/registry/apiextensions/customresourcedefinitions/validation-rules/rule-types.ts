/**
 * What a rule knows of the value it is about: the types of the language that schemas stand for.
 * Source: apiextensions-apiserver third_party/forked/celopenapi/model/schemas.go SchemaDeclType
 */
import {
  bool,
  bytes,
  double,
  duration,
  dyn,
  int,
  listOf,
  mapOf,
  objectType,
  string,
  type Type,
  timestamp,
} from "../../../../cel/types.ts";
import { additionalOf, itemsOf, mostLevels, propertyOf, type Schema } from "../schemas.ts";
import { escapeName, unescapeName } from "./escaping.ts";

const scalars: Readonly<Record<string, Type>> = { boolean: bool, number: double, integer: int };
const formats: Readonly<Record<string, Type>> = { byte: bytes, duration, date: timestamp, "date-time": timestamp };

/**
 * @param name tells the types of objects apart, which have those of their places
 * @param isResource has names and a kind, whatever its schema says
 * @returns undefined for what no rule can see: values of no known type, and lists and maps of such
 */
export function ruleType(schema: Schema, name: string, isResource = isEmbedded(schema), level = 0): Type | undefined {
  if (level > mostLevels) return undefined;
  if (schema["x-kubernetes-int-or-string"] === true) return dyn;
  const known = isResource ? withResourceFields(schema) : schema;
  switch (known.type) {
    case "array": {
      const items = itemsOf(known);
      const item = items && ruleType(items, `${name}.@idx`, isEmbedded(items), level + 1);
      return item && listOf(item);
    }
    case "object": {
      const additional = additionalOf(known);
      if (additional === undefined) return objectOf(known, name);
      const value = ruleType(additional, `${name}.@elem`, isEmbedded(additional), level + 1);
      return value && mapOf(string, value);
    }
    case "string":
      return Object.hasOwn(formats, known.format ?? "") ? formats[known.format as string] : string;
    default:
      return Object.hasOwn(scalars, known.type ?? "") ? scalars[known.type as string] : undefined;
  }
}

/** What is worked out of a schema once, however many values it has: schemas may be as large as objects. */
export function perSchema<T extends object>(workOut: (schema: Schema) => T): (schema: Schema) => T {
  const known = new WeakMap<Schema, T>();
  return (schema) => {
    const found = known.get(schema) ?? workOut(schema);
    known.set(schema, found);
    return found;
  };
}

export function isEmbedded(schema: Schema): boolean {
  return schema["x-kubernetes-embedded-resource"] === true;
}

/** Looks at a property only when a rule names it. */
function objectOf(schema: Schema, name: string): Type {
  const types = new Map<string, Type | undefined>();
  return objectType(name, (identifier) => {
    if (!types.has(identifier)) {
      const property = unescapeName(identifier);
      const isUsed = property !== undefined && escapeName(property) === identifier;
      const below = isUsed ? propertyOf(schema, property) : undefined;
      types.set(identifier, below && ruleType(below, `${name}.${identifier}`));
    }
    return types.get(identifier);
  });
}

const text: Schema = { type: "string" };
const resourceFields = {
  apiVersion: text,
  kind: text,
  metadata: { type: "object", properties: { name: text, generateName: text } },
};

/** Source: WithTypeAndObjectMeta */
export const withResourceFields = perSchema((schema) => {
  const metadata = propertyOf(schema, "metadata");
  const hasAll =
    propertyOf(schema, "kind")?.type === "string" &&
    propertyOf(schema, "apiVersion")?.type === "string" &&
    metadata?.type === "object" &&
    propertyOf(metadata, "name")?.type === "string" &&
    propertyOf(metadata, "generateName")?.type === "string";
  return hasAll ? schema : { ...schema, properties: { ...schema.properties, ...resourceFields } };
});
