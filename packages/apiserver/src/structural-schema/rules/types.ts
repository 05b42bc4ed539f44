/**
 * CEL types of schemas, used to type-check rules.
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
} from "../../cel/types.ts";
import { additionalOf, isEmbedded, itemsOf, mostLevels, perSchema, propertyOf, type Schema } from "../schema.ts";
import { escapeName, unescapeName } from "./escaping.ts";

const scalars: Readonly<Record<string, Type>> = { boolean: bool, number: double, integer: int };
const formats: Readonly<Record<string, Type>> = { byte: bytes, duration, date: timestamp, "date-time": timestamp };

/**
 * @param name of the type; object types are named after their path in the schema, because types compare by name
 * @param isResource adds apiVersion, kind and metadata.name when the schema lacks them
 * @returns undefined for values that rules cannot access: those without a type, and lists and maps of them
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
      return Object.hasOwn(formats, known.format ?? "") ? formats[known.format!] : string;
    default:
      return Object.hasOwn(scalars, known.type ?? "") ? scalars[known.type!] : undefined;
  }
}

/** Object type that computes the type of a property when a rule uses it. */
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

/** The schema with apiVersion, kind, metadata.name and metadata.generateName. Source: WithTypeAndObjectMeta */
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
