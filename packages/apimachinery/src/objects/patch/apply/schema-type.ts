import { scheme } from "../../schema/scheme.ts";
import {
  type ApplyType,
  applyTypeOf,
  deducedType,
  type ListApplyType,
  type StructApplyType,
  type StructField,
  string,
  untyped,
} from "./apply-type.ts";
import { fieldElement } from "./path-element.ts";

/** The parts of a schema that determine ownership. */
export interface ApplySchema {
  readonly type?: string;
  readonly format?: string;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, ApplySchema>>;
  readonly additionalProperties?: ApplySchema | boolean;
  readonly items?: ApplySchema;
  readonly "x-kubernetes-int-or-string"?: boolean;
  readonly "x-kubernetes-embedded-resource"?: boolean;
  readonly "x-kubernetes-preserve-unknown-fields"?: boolean;
  readonly "x-kubernetes-list-type"?: string;
  readonly "x-kubernetes-list-map-keys"?: readonly string[];
  readonly "x-kubernetes-map-type"?: string;
}

/** @param schema schema of a whole object; its kind, apiVersion and metadata are replaced by the standard types */
export function applyTypeOfSchema(schema: ApplySchema): StructApplyType {
  return structType(schema, true);
}

function typeOf(schema: ApplySchema): ApplyType {
  if (schema["x-kubernetes-int-or-string"]) return untyped;
  switch (schema.type) {
    case "string":
      return schema.format === undefined || schema.format === "" || schema.format === "byte" ? string : untyped;
    case "integer":
    case "number":
      return { kind: "scalar", scalar: "numeric" };
    case "boolean":
      return { kind: "scalar", scalar: "boolean" };
    case "array":
      return listType(schema);
    case "object":
      return objectType(schema);
    default:
      return deducedType;
  }
}

function objectType(schema: ApplySchema): ApplyType {
  const atomic = schema["x-kubernetes-map-type"] === "atomic";
  if (schema.properties !== undefined || schema["x-kubernetes-embedded-resource"]) {
    return structType(schema, schema["x-kubernetes-embedded-resource"] === true);
  }
  if (schema["x-kubernetes-preserve-unknown-fields"]) return atomic ? { kind: "any", atomic } : deducedType;
  const { additionalProperties } = schema;
  return { kind: "map", atomic, value: typeof additionalProperties === "object" ? typeOf(additionalProperties) : deducedType };
}

function structType(schema: ApplySchema, isObject: boolean): StructApplyType {
  const fields = new Map<string, StructField>();
  const { properties = {} } = schema;
  for (const name of Object.keys(properties)) fields.set(name, field(name, typeOf(properties[name]!)));
  if (isObject) {
    fields.set("apiVersion", field("apiVersion", string));
    fields.set("kind", field("kind", string));
    fields.set("metadata", field("metadata", applyTypeOf(scheme.type("meta/v1.ObjectMeta")!)));
  }
  return {
    kind: "struct",
    atomic: schema["x-kubernetes-map-type"] === "atomic",
    fields,
    impliedFields: [],
    other: schema["x-kubernetes-preserve-unknown-fields"] ? deducedType : undefined,
  };
}

function field(name: string, type: ApplyType): StructField {
  return { name, element: fieldElement(name), type, implied: undefined, omitsZero: false };
}

function listType(schema: ApplySchema): ListApplyType {
  const element = schema.items === undefined ? deducedType : typeOf(schema.items);
  const relation = schema["x-kubernetes-list-type"];
  if (relation === "set") return { kind: "list", relation, keys: [], element };
  if (relation !== "map") return { kind: "list", relation: "atomic", keys: [], element };
  const properties = schema.items?.properties ?? {};
  const keys = (schema["x-kubernetes-list-map-keys"] ?? [])
    .map((name) => ({ name, default: Object.hasOwn(properties, name) ? properties[name]?.default : undefined }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  return { kind: "list", relation, keys, element };
}
