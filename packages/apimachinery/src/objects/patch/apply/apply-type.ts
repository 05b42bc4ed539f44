/**
 * Schema of server-side apply: which values are atomic and which granular, and what identifies list items. Derived from
 * the descriptors of built-in kinds (`applyTypeOf`), or from a custom resource's schema (`applyTypeOfSchema`). Objects
 * without schema use `deducedType`.
 * Source: k8s.io/kube-openapi pkg/schemaconv; structured-merge-diff v4 schema/, typed/deduced.go
 */
import { canonicalQuantity } from "../../meta/quantity.ts";
import type { FieldDescriptor, FieldType, TypeDescriptor } from "../../schema/descriptor.ts";
import { fieldElement, type PathElement } from "./path-element.ts";

export type ApplyType = ScalarApplyType | ListApplyType | MapApplyType | StructApplyType | AnyApplyType;

export interface ScalarApplyType {
  readonly kind: "scalar";
  /** `untyped`: any scalar, e.g. quantities, times, int-or-string. */
  readonly scalar: "string" | "numeric" | "boolean" | "untyped";
  /**
   * Canonical text, equal for equivalent values; undefined for an invalid value. Differs from upstream, which compares the
   * text as written: there, applying `cpu: 1` over `1000m` conflicts and writes the object each time.
   */
  readonly canonical?: (text: string) => string | undefined;
}

export interface ListApplyType {
  readonly kind: "list";
  /** `map`: items are identified by `keys`; `set`: by their value; `atomic`: the list is one value. */
  readonly relation: "atomic" | "set" | "map";
  readonly keys: readonly ListKey[];
  readonly element: ApplyType;
}

interface ListKey {
  readonly name: string;
  /** Default for items without the key; undefined when the key is mandatory. */
  readonly default: unknown;
}

/** A map with arbitrary keys and values of one type. */
export interface MapApplyType {
  readonly kind: "map";
  readonly atomic: boolean;
  readonly value: ApplyType;
}

export interface StructApplyType {
  readonly kind: "struct";
  readonly atomic: boolean;
  /** Derived from a built-in type, so that field names do not come from users. */
  readonly described?: boolean;
  readonly fields: ReadonlyMap<string, StructField>;
  /** The fields with `implied` set. */
  readonly impliedFields: readonly StructField[];
  /** Type of undeclared fields; undefined when these are not allowed. */
  readonly other: ApplyType | undefined;
}

/**
 * No schema: maps are granular and all other values atomic; with `atomic` the whole value is.
 */
interface AnyApplyType {
  readonly kind: "any";
  readonly atomic: boolean;
}

export interface StructField {
  readonly name: string;
  readonly element: PathElement;
  readonly type: ApplyType;
  /**
   * The value of the field when a decoded object lacks it, because Go always writes the field: `{}` for a struct, null for
   * a time. undefined: the field can be absent.
   */
  readonly implied: unknown;
  /** A zero value means absent (omitempty). */
  readonly omitsZero: boolean;
}

export const deducedType: AnyApplyType = { kind: "any", atomic: false };
const atomicAnyType: AnyApplyType = { kind: "any", atomic: true };

export const string: ScalarApplyType = { kind: "scalar", scalar: "string" };
const numeric: ScalarApplyType = { kind: "scalar", scalar: "numeric" };
const boolean: ScalarApplyType = { kind: "scalar", scalar: "boolean" };
export const untyped: ScalarApplyType = { kind: "scalar", scalar: "untyped" };
const quantity: ScalarApplyType = { ...untyped, canonical: canonicalQuantity };

interface Variants {
  readonly own: StructApplyType;
  readonly atomic: StructApplyType;
  readonly granular: StructApplyType;
}

/** A pure cache: descriptors do not change. */
const structs = new WeakMap<TypeDescriptor, Variants>();

/** Cached: the same object for the same descriptor. */
export function applyTypeOf(descriptor: TypeDescriptor): StructApplyType {
  return variantsOf(descriptor).own;
}

const variantsOf = (descriptor: TypeDescriptor): Variants =>
  structs.getOrInsertComputed(descriptor, () => {
    const granular = new DescribedStruct(descriptor, false);
    const atomic = new DescribedStruct(descriptor, true);
    return { own: descriptor.atomic ? atomic : granular, atomic, granular };
  });

/** A struct type from a descriptor. Fields are resolved lazily, because types can be recursive. */
class DescribedStruct implements StructApplyType {
  readonly kind = "struct";
  readonly described = true;
  readonly atomic: boolean;
  readonly other = undefined;
  readonly #descriptor: TypeDescriptor;
  #fields: ReadonlyMap<string, StructField> | undefined;
  #implied: readonly StructField[] | undefined;

  constructor(descriptor: TypeDescriptor, atomic: boolean) {
    this.#descriptor = descriptor;
    this.atomic = atomic;
  }

  get fields(): ReadonlyMap<string, StructField> {
    this.#fields ??= new Map(this.#descriptor.fields.map((field) => [field.name, structField(field)]));
    return this.#fields;
  }

  get impliedFields(): readonly StructField[] {
    this.#implied ??= [...this.fields.values()].filter((field) => field.implied !== undefined);
    return this.#implied;
  }
}

function structField(field: FieldDescriptor): StructField {
  const alwaysWritten = !field.pointer && (isGoStruct(field.type) || !field.omitEmpty);
  return {
    name: field.name,
    element: fieldElement(field.name),
    type: typeOfField(field),
    implied: alwaysWritten ? zeroOf(field.type) : undefined,
    omitsZero: !field.pointer && field.omitEmpty && !isGoStruct(field.type),
  };
}

/** Types that are structs in Go, which `omitempty` never omits. */
function isGoStruct(type: FieldType): boolean {
  return ["struct", "time", "microTime", "quantity", "intOrString", "raw"].includes(type.kind);
}

function zeroOf(type: FieldType): unknown {
  switch (type.kind) {
    case "struct":
      return emptyStruct;
    case "string":
      return "";
    case "bool":
      return false;
    case "int32":
    case "int64":
    case "float64":
    case "intOrString":
      return 0;
    case "quantity":
      return "0";
    default:
      return null;
  }
}

const emptyStruct = Object.freeze({});

function typeOfField(field: FieldDescriptor): ApplyType {
  const { type } = field;
  switch (type.kind) {
    case "list":
      return listType(field, type.element);
    case "map":
      return { kind: "map", atomic: field.mapType === "atomic", value: typeOf(type.value) };
    case "struct": {
      const variants = variantsOf(type.struct);
      return field.mapType === undefined ? variants.own : variants[field.mapType];
    }
    default:
      return typeOf(type);
  }
}

function listType(field: FieldDescriptor, elementType: FieldType): ListApplyType {
  const element = typeOf(elementType);
  if (field.listType === "map") return mapList(element, elementType, field.listMapKeys ?? []);
  if (field.listType !== undefined) return { kind: "list", relation: field.listType, keys: [], element };
  // Older types declare it only through their strategic merge patch strategy.
  if (!field.patchStrategy.includes("merge")) return { kind: "list", relation: "atomic", keys: [], element };
  if (field.patchMergeKey === undefined) return { kind: "list", relation: "set", keys: [], element };
  return mapList(element, elementType, [field.patchMergeKey]);
}

function mapList(element: ApplyType, elementType: FieldType, names: readonly string[]): ListApplyType {
  const struct = elementType.kind === "struct" ? elementType.struct : undefined;
  const keys = names.map((name) => ({ name, default: keyDefault(struct?.field(name)) }));
  keys.sort((a, b) => (a.name < b.name ? -1 : 1));
  return { kind: "list", relation: "map", keys, element };
}

/** The default in OpenAPI: the declared one, or the zero value of a scalar that is always written. */
function keyDefault(field: FieldDescriptor | undefined): unknown {
  if (field === undefined) return undefined;
  if (field.default !== undefined) return field.default;
  const scalar = ["string", "bool", "int32", "int64", "float64"].includes(field.type.kind);
  return scalar && !field.pointer && !field.omitEmpty ? zeroOf(field.type) : undefined;
}

function typeOf(type: FieldType): ApplyType {
  switch (type.kind) {
    case "struct":
      return applyTypeOf(type.struct);
    case "list":
      return { kind: "list", relation: "atomic", keys: [], element: typeOf(type.element) };
    case "map":
      return { kind: "map", atomic: false, value: typeOf(type.value) };
    case "string":
    case "bytes":
      return string;
    case "bool":
      return boolean;
    case "int32":
    case "int64":
    case "float64":
      return numeric;
    case "quantity":
      return quantity;
    case "time":
    case "microTime":
    case "intOrString":
      return untyped;
    case "raw":
      return atomicAnyType;
    case "fieldsV1":
    case "json":
    case "any":
    case "schemaOrArray":
    case "schemaOrBool":
    case "schemaOrStrings":
      return deducedType;
  }
}
