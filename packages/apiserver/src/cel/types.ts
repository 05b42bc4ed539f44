/**
 * Static types of expressions.
 * Source: google/api/expr/v1alpha1/checked.proto; cel-go v0.9 checker/types.go
 */
export type Type =
  | { readonly kind: "dyn" | "error" | "null" | "unknown" }
  | { readonly kind: "primitive" | "wellKnown"; readonly name: string }
  | { readonly kind: "list"; readonly item: Type; readonly weight: number }
  | { readonly kind: "map"; readonly key: Type; readonly value: Type; readonly weight: number }
  | { readonly kind: "object"; readonly name: string; readonly field: (name: string) => Type | undefined }
  | { readonly kind: "type"; readonly of?: Type; readonly weight: number }
  | { readonly kind: "parameter"; readonly name: string };

/** Limit of the size of a type: a short expression can have a type of exponential size. */
const heaviest = 1_000;

/** Thrown when a type exceeds the size limit. */
export class TypeTooLarge extends Error {}

function weighed(...parts: readonly Type[]): number {
  const weight = parts.reduce((sum, part) => sum + ("weight" in part ? part.weight : 1), 1);
  if (weight > heaviest) throw new TypeTooLarge();
  return weight;
}

const primitive = (name: string): Type => ({ kind: "primitive", name });
const wellKnown = (name: string): Type => ({ kind: "wellKnown", name });

export const bool = primitive("bool");
export const int = primitive("int");
export const uint = primitive("uint");
export const double = primitive("double");
export const string = primitive("string");
export const bytes = primitive("bytes");
export const duration = wellKnown("duration");
export const timestamp = wellKnown("timestamp");
export const dyn: Type = { kind: "dyn" };
export const nullType: Type = { kind: "null" };
/** Type of an expression with an error that was already reported. */
export const errorType: Type = { kind: "error" };
/** Type of a call of an undeclared method. */
export const unknown: Type = { kind: "unknown" };

/** `listOf`, `mapOf` and `typeType` throw TypeTooLarge. */
export const listOf = (item: Type): Type => ({ kind: "list", item, weight: weighed(item) });
export const mapOf = (key: Type, value: Type): Type => ({ kind: "map", key, value, weight: weighed(key, value) });
export const typeType = (of?: Type): Type => ({ kind: "type", ...(of && { of }), weight: weighed(...(of ? [of] : [])) });
/** A type parameter in the signature of a function: `A` in `list(A)`. */
export const parameter = (name: string): Type => ({ kind: "parameter", name });

/** @param field returns the type of a field, undefined for an unknown one; called only for fields that are used */
export function objectType(name: string, field: (name: string) => Type | undefined): Type {
  return { kind: "object", name, field };
}

/** A type in error texts: `map(string, list(int))`. Source: FormatCheckedType */
export function formatType(type: Type): string {
  switch (type.kind) {
    case "error":
      return "!error!";
    case "unknown":
      return "<nil>";
    case "list":
      return `list(${formatType(type.item)})`;
    case "map":
      return `map(${formatType(type.key)}, ${formatType(type.value)})`;
    case "type":
      return type.of === undefined ? "type" : `type(${formatType(type.of)})`;
    case "dyn":
    case "null":
      return type.kind;
    default:
      return type.name;
  }
}

const protoNames: Readonly<Record<string, string>> = {
  int: "INT64",
  uint: "UINT64",
  null: "null:NULL_VALUE",
  unknown: "<nil>",
};

/** A type in protobuf text format, used by the error of field selection. */
export function formatProto(type: Type): string {
  switch (type.kind) {
    case "primitive":
      return `primitive:${protoNames[type.name] ?? type.name.toUpperCase()}`;
    case "wellKnown":
      return `well_known:${type.name.toUpperCase()}`;
    case "list":
      return `list_type:{elem_type:{${formatProto(type.item)}}}`;
    case "map":
      return `map_type:{key_type:{${formatProto(type.key)}} value_type:{${formatProto(type.value)}}}`;
    case "type":
      return `type:{${type.of === undefined ? "" : formatProto(type.of)}}`;
    case "object":
      return `message_type:"${type.name}"`;
    case "parameter":
      return `type_param:"${type.name}"`;
    default:
      return protoNames[type.kind] ?? `${type.kind}:{}`;
  }
}

/** Structural equality; object types and type parameters are compared by their names alone. */
export function isSameType(a: Type, b: Type): boolean {
  if (a === b) return true;
  if (a.kind !== b.kind) return false;
  if (a.kind === "list" && b.kind === "list") return isSameType(a.item, b.item);
  if (a.kind === "map" && b.kind === "map") return isSameType(a.key, b.key) && isSameType(a.value, b.value);
  if (a.kind === "type" && b.kind === "type")
    return a.of === undefined || b.of === undefined ? a.of === b.of : isSameType(a.of, b.of);
  return "name" in a && "name" in b ? a.name === b.name : true;
}
