/**
 * Published schemas of custom resources: the schema of the CustomResourceDefinition with the fields of every object added.
 * Source: apiextensions-apiserver pkg/controller/openapi/builder, pkg/controller/openapi/v2/conversion.go
 */
import type { CustomKind, CustomSchema, Schema } from "./document.ts";

/** Provides definitions of built-in types. */
interface NamedSchemas {
  /** @returns a `$ref` to the definition */
  named(name: string): Schema;
}

const embedded = "x-kubernetes-embedded-resource";
const preservesUnknown = "x-kubernetes-preserve-unknown-fields";
const conventions = "More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";
const ownFields = {
  apiVersion: {
    description: `APIVersion defines the versioned schema of this representation of an object. ${conventions}#resources`,
    type: "string",
  },
  kind: {
    description: `Kind is a string value representing the type of this object. In CamelCase. ${conventions}#types-kinds`,
    type: "string",
  },
} as const;

/** @param v2 for OpenAPI v2, which kubectl uses for validation: omit what v2 cannot express */
export function customObjectSchema({ schema, preserving }: CustomKind, definitions: NamedSchemas, v2: boolean): Schema {
  // If any property were listed, kubectl would reject all others as unknown.
  if (schema === undefined || (v2 && (preserving || schema[preservesUnknown] === true))) return { type: "object" };
  const made = published(schema, definitions, v2);
  made.properties = {
    ...made.properties,
    ...ownFields,
    metadata: metadata(definitions, "ObjectMeta", "Standard object's metadata."),
  };
  return made;
}

/** The schema of a custom resource's list kind. @param item reference to the schema of the objects */
export function customListSchema(
  kind: string,
  listKind: string,
  plural: string,
  item: Schema,
  definitions: NamedSchemas,
): Schema {
  return {
    description: `${listKind} is a list of ${kind}`,
    type: "object",
    required: ["items"],
    properties: {
      ...ownFields,
      items: { description: `List of ${plural}. ${conventions}`, type: "array", items: item },
      metadata: metadata(definitions, "ListMeta", "Standard list metadata."),
    },
  };
}

function metadata(definitions: NamedSchemas, type: "ObjectMeta" | "ListMeta", description: string): Schema {
  return { description: `${description} ${conventions}#metadata`, ...definitions.named(`meta/v1.${type}`) };
}

/** Keywords omitted in v2: operators, which it does not support, and keywords that do not describe the type. */
const operators = ["allOf", "anyOf", "oneOf", "not"];
const dropped = new Set(["default", "example", "externalDocs", "x-kubernetes-validations", "nullable"]);

function published(schema: CustomSchema, definitions: NamedSchemas, v2: boolean): Schema {
  const isOpen = v2 && (schema["nullable"] === true || schema[preservesUnknown] === true);
  const made: Record<string, unknown> = {};
  for (const [word, value] of Object.entries(schema)) {
    if (value === undefined || value === null || value === "" || value === false) continue;
    if (v2 && (dropped.has(word) || operators.includes(word))) continue;
    if (word === "properties") {
      if (!isOpen)
        // Cast: the schema was validated when its definition was written.
        made[word] = mapValues(value as Readonly<Record<string, CustomSchema>>, (one) => published(one, definitions, v2));
    } else if (word === "items") {
      // Cast: the schema was validated when its definition was written.
      if (!isOpen) made[word] = published(value as CustomSchema, definitions, v2);
    } else if (word === "additionalProperties" && typeof value === "object") {
      // Cast: the schema was validated when its definition was written.
      made[word] = published(value as CustomSchema, definitions, v2);
    } else made[word] = value;
  }
  if (v2) leaveOpen(made, schema);
  if (schema[embedded] === true && !(v2 && schema[preservesUnknown] === true)) embed(made, definitions);
  return made;
}

/** Removes constraints that would make kubectl reject valid objects: nullable types, untyped lists and objects. */
function leaveOpen(made: Record<string, unknown>, schema: CustomSchema): void {
  if (schema["nullable"] === true) delete made["type"];
  if (made["type"] === "array" && made["items"] === undefined) delete made["type"];
  if (made["type"] === "object" && schema[preservesUnknown] === true) delete made["type"];
  const { required }: { required?: readonly string[] } = made;
  if (required === undefined) return;
  // Cast: the schema was validated when its definition was written.
  const properties = (schema["properties"] ?? {}) as Readonly<Record<string, CustomSchema>>;
  // Cast: the schema was validated when its definition was written.
  const additional = schema["additionalProperties"] as CustomSchema | boolean | undefined;
  const isNullable = (name: string): boolean => Object.hasOwn(properties, name) && properties[name]?.["nullable"] === true;
  const left =
    typeof additional === "object" && additional["nullable"] === true ? [] : required.filter((name) => !isNullable(name));
  if (left.length === 0) delete made["required"];
  else made["required"] = left;
}

function embed(made: Record<string, unknown>, definitions: NamedSchemas): void {
  made["properties"] = {
    ...(made["properties"] as Record<string, Schema> | undefined), // cast: made above
    ...ownFields,
    metadata: metadata(definitions, "ObjectMeta", "Standard object's metadata."),
  };
  // Cast: made above.
  made["required"] = [...new Set([...((made["required"] as string[] | undefined) ?? []), "kind", "apiVersion"])];
}

function mapValues<T, U>(record: Readonly<Record<string, T>>, change: (value: T) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value)]));
}
