/**
 * Type metadata for the codecs, patches, server-side apply and OpenAPI. Created lazily from the tables in `kinds/`.
 */
export interface TypeDescriptor {
  /** OpenAPI name, e.g. `io.k8s.api.core.v1.PodSpec`. */
  readonly name: string;
  /** Go name as in error texts, e.g. `PodSpec`. */
  readonly goName: string;
  /** Last part of the Go package path, e.g. `v1`; error texts have `v1.PodSpec`. */
  readonly goPackage: string;
  /** Group and version of the type's table; `meta.k8s.io` and `v1` for shared types. */
  readonly group: string;
  readonly version: string;
  /** JSON fields in the order in which Go writes them, with the fields of inlined structs at the position of the struct. */
  readonly fields: readonly FieldDescriptor[];
  /** Protobuf fields in ascending order. An inlined struct is a nested message. */
  readonly message: readonly MessageField[];
  /** Has `kind` and `apiVersion`. */
  readonly isKind: boolean;
  /** Server-side apply treats the struct as one value. */
  readonly atomic: boolean;
  /** Has no protobuf encoding (Table). */
  readonly jsonOnly: boolean;
  /**
   * How an empty list without omitempty is written in JSON: `[]` for types that are never stored (reviews, discovery),
   * `null` for others, which pass through protobuf, where empty and nil lists are the same.
   */
  readonly writesEmptyLists: boolean;
  field(name: string): FieldDescriptor | undefined;
}

export interface FieldDescriptor {
  readonly name: string;
  readonly type: FieldType;
  /** A pointer in Go: the zero value differs from absence. */
  readonly pointer: boolean;
  readonly omitEmpty: boolean;
  /** Marked `+optional`; for documentation, not for the codecs. */
  readonly optional: boolean;
  /** Present in every decoded object, by default with the zero value. Same rule as for the generated TypeScript types. */
  readonly required: boolean;
  readonly deprecated: boolean;
  readonly unionDiscriminator: boolean;
  readonly listType?: "atomic" | "set" | "map";
  readonly listMapKeys?: readonly string[];
  readonly mapType?: "atomic" | "granular";
  /** Any of `merge`, `replace`, `retainKeys`. */
  readonly patchStrategy: readonly string[];
  readonly patchMergeKey?: string;
  readonly default?: unknown;
  /** Name of the Go struct that declares the field; differs from the type for fields of inlined structs. */
  readonly declaredBy: string;
}

export interface MessageField {
  readonly number: number;
  /** undefined for an inlined struct, whose JSON fields are those of the parent. */
  readonly name: string | undefined;
  readonly type: FieldType;
  readonly pointer: boolean;
  readonly omitEmpty: boolean;
  readonly required: boolean;
}

export type FieldType =
  | ScalarType
  | { readonly kind: "struct"; readonly struct: TypeDescriptor; readonly goType: string }
  /** `wrapped`: encoded as a nested message in protobuf (named Go slice types). */
  | { readonly kind: "list"; readonly element: FieldType; readonly wrapped: boolean; readonly goType: string }
  | { readonly kind: "map"; readonly value: FieldType; readonly goType: string };

export type ScalarKind =
  | "string"
  | "bool"
  | "int32"
  | "int64"
  | "float64"
  /** base64 text in JSON. */
  | "bytes"
  /** RFC 3339 text, whole seconds, UTC. */
  | "time"
  /** RFC 3339 text with six fractional digits, UTC. */
  | "microTime"
  /** Canonical text. */
  | "quantity"
  /** Number or string. */
  | "intOrString"
  /** Any JSON value: RawExtension. */
  | "raw"
  /** An object: FieldsV1. */
  | "fieldsV1"
  /** Any JSON value in a schema of a CustomResourceDefinition. */
  | "json"
  /** Any JSON value without protobuf encoding. */
  | "any"
  | "schemaOrArray"
  | "schemaOrBool"
  | "schemaOrStrings";

interface ScalarType {
  readonly kind: ScalarKind;
  readonly goType: string;
  /** The constants of a named string type. */
  readonly values?: readonly string[];
  /** Marked `+enum`: OpenAPI lists the values. */
  readonly isEnum?: boolean;
}

/** One generated table, `kinds/<group>/<version>.json`. */
export interface Table {
  readonly goPackage: string;
  readonly group: string;
  readonly version: string;
  readonly types: Readonly<Record<string, TypeRow>>;
}

export interface TypeRow {
  readonly alias?: string;
  readonly enum?: readonly string[];
  readonly markers?: readonly string[];
  readonly fields?: readonly FieldRow[];
}

/**
 * JSON name, type, protobuf field number (0 = none), flags (o omitempty, p optional, i inline, d deprecated, u union
 * discriminator), extra. Types: `*T`, `[]T`, `map:T`, `.T` in the same table, `core/v1.T` in another one, or a scalar.
 */
export type FieldRow = [name: string, type: string, number: number, flags: string, extra?: FieldExtra];

interface FieldExtra {
  readonly listType?: "atomic" | "set" | "map";
  readonly listMapKeys?: readonly string[];
  readonly mapType?: "atomic" | "granular";
  readonly patchStrategy?: string;
  readonly patchMergeKey?: string;
  readonly default?: unknown;
}
