/**
 * What the codecs, patches, server-side apply and OpenAPI know about a type. Made from the tables in `kinds/`, on first
 * use of each type.
 */
export interface TypeDescriptor {
  /** As OpenAPI calls it: `io.k8s.api.core.v1.PodSpec`. */
  readonly name: string;
  /** `PodSpec`; error texts use it. */
  readonly goName: string;
  /** `v1`; error texts say `v1.PodSpec`. */
  readonly goPackage: string;
  /** Group and version of the table that holds it; `meta.k8s.io` `v1` for shared types. */
  readonly group: string;
  readonly version: string;
  /** JSON fields in the order Go writes them; fields of inlined structs stand where the struct stands. */
  readonly fields: readonly FieldDescriptor[];
  /** Protobuf fields by ascending number. An inlined struct is a message of its own here. */
  readonly message: readonly MessageField[];
  /** Has `kind` and `apiVersion`. */
  readonly isKind: boolean;
  /** A struct that server-side apply treats as one value. */
  readonly atomic: boolean;
  /** Cannot be sent as protobuf (Table). */
  readonly jsonOnly: boolean;
  /**
   * What an empty list that Go always writes is on the wire: `[]` where the type is never stored (reviews, discovery),
   * `null` where it passes through protobuf, which cannot tell an empty list from none.
   */
  readonly writesEmptyLists: boolean;
  field(name: string): FieldDescriptor | undefined;
}

export interface FieldDescriptor {
  readonly name: string;
  readonly type: FieldType;
  /** A Go pointer: its zero value differs from its absence. */
  readonly pointer: boolean;
  readonly omitEmpty: boolean;
  /** Marked `+optional`; for documentation, not for the codecs. */
  readonly optional: boolean;
  /** Decoded objects always have it: `""`, 0, false, `[]`, `{}` when the input had none. Same rule as the TypeScript types. */
  readonly required: boolean;
  readonly deprecated: boolean;
  readonly unionDiscriminator: boolean;
  readonly listType?: "atomic" | "set" | "map";
  readonly listMapKeys?: readonly string[];
  readonly mapType?: "atomic" | "granular";
  /** Parts of the strategy: `merge`, `replace`, `retainKeys`. */
  readonly patchStrategy: readonly string[];
  readonly patchMergeKey?: string;
  readonly default?: unknown;
  /** Go struct that declares it, when it comes from an inlined one. */
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
  /** `wrapped`: protobuf puts the list into a message of its own (named Go slice types). */
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
  /** The same with six digits. */
  | "microTime"
  /** Canonical text. */
  | "quantity"
  /** number or text. */
  | "intOrString"
  /** Any JSON value: RawExtension. */
  | "raw"
  /** An object: FieldsV1. */
  | "fieldsV1"
  /** Any JSON value inside a CRD's schema. */
  | "json"
  /** Any JSON value that protobuf does not carry. */
  | "any"
  | "schemaOrArray"
  | "schemaOrBool"
  | "schemaOrStrings";

export interface ScalarType {
  readonly kind: ScalarKind;
  readonly goType: string;
  /** Values of a named string type, where Go declares constants. */
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
 * JSON name, type, protobuf number (0 = none), flags (o omitempty, p optional, i inline, d deprecated, u union
 * discriminator), the rest. Types: `*T`, `[]T`, `map:T`, `.T` of the same table, `core/v1.T` of another, or a scalar.
 */
export type FieldRow = [name: string, type: string, number: number, flags: string, extra?: FieldExtra];

export interface FieldExtra {
  readonly listType?: "atomic" | "set" | "map";
  readonly listMapKeys?: readonly string[];
  readonly mapType?: "atomic" | "granular";
  readonly patchStrategy?: string;
  readonly patchMergeKey?: string;
  readonly default?: unknown;
}
