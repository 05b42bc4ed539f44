/**
 * Schemas of types, from their descriptors.
 * Source: k8s.io/kube-openapi pkg/builder, pkg/generators (extensions, defaults, unions)
 */
import type { GroupVersionKind } from "../../meta/group-version.ts";
import type { FieldDescriptor, FieldType, TypeDescriptor } from "../descriptor.ts";
import { scheme } from "../scheme.ts";
import { customListSchema, customObjectSchema } from "./custom-kinds.ts";
import { fieldDescription, typeDescription } from "./descriptions.ts";
import type { CustomKind, OpenApiOptions, OpenApiResource, Schema } from "./document.ts";
import { capital } from "./operation-names.ts";

interface DefinitionOptions extends OpenApiOptions {
  /** Include default values: set for OpenAPI v3, not for v2. */
  readonly defaults?: boolean;
  /** Prefix of references. */
  readonly prefix: "#/definitions/" | "#/components/schemas/";
}

/** Collects the schemas of all requested types and of the types they reference. */
export class Definitions {
  readonly #found = new Map<string, Schema>();
  readonly #options: DefinitionOptions;

  constructor(options: DefinitionOptions) {
    this.#options = options;
  }

  /** Reference to a kind; an untyped object when it has no descriptor. */
  kind(gvk: GroupVersionKind): Schema {
    const type = scheme.kind(gvk);
    return type === undefined ? { type: "object" } : this.type(type);
  }

  /** Reference to a type by table and name, e.g. `meta/v1.ObjectMeta`. @throws Error for an unknown type */
  named(name: string): Schema {
    const type = scheme.type(name);
    if (type === undefined) throw new Error(`there is no type ${name}`);
    return this.type(type);
  }

  /** References to a custom resource and to its list. */
  custom(resource: OpenApiResource & { readonly custom: CustomKind }): { object: Schema; list: Schema } {
    const { group, version, kind, listKind } = resource;
    const refer = (name: string, make: () => Schema): Schema => {
      // The group is reversed like a Java package: `com.example.v1.Widget`.
      const full = `${group.split(".").reverse().join(".")}.${version}.${name}`;
      if (!this.#found.has(full)) {
        this.#found.set(full, { ...make(), "x-kubernetes-group-version-kind": [{ group, kind: name, version }] });
      }
      return this.#ref(full);
    };
    const object = refer(kind, () => customObjectSchema(resource.custom, this, this.#options.defaults !== true));
    const list = refer(listKind, () => customListSchema(kind, listKind, resource.resource, object, this));
    return { object, list };
  }

  /** Reference to a kind of meta.k8s.io, e.g. Status, DeleteOptions, APIGroup. */
  meta(kind: string): Schema {
    return this.kind({ group: "meta.k8s.io", version: "v1", kind });
  }

  /** Reference to the untyped body of a PATCH request. */
  patch(): Schema {
    return this.#named({
      name: `${meta}.Patch`,
      schema: { description: "A change to an object, in the form that the Content-Type names.", type: "object" },
    });
  }

  /** Reference to a type. */
  type(type: TypeDescriptor): Schema {
    if (!this.#found.has(type.name)) {
      const schema: Schema = {};
      this.#found.set(type.name, schema); // registered before its fields: types can be recursive
      Object.assign(schema, this.#definition(type));
    }
    return this.#ref(type.name);
  }

  /** All collected schemas, sorted by name. */
  all(): Record<string, Schema> {
    return sortedByName(Object.fromEntries(this.#found));
  }

  #ref(name: string): Schema {
    return { $ref: this.#options.prefix + name };
  }

  #named({ name, schema }: NamedSchema): Schema {
    this.#found.set(name, schema);
    return this.#ref(name);
  }

  #definition(type: TypeDescriptor): Schema {
    const properties: Record<string, Schema> = {};
    for (const field of type.fields) {
      properties[field.name] = { ...describe(fieldDescription(type, field)), ...this.#field(field) };
    }
    const required = type.fields.filter((field) => !field.omitEmpty && !field.optional).map((field) => field.name);
    const schema: Schema = { ...describe(typeDescription(type)), type: "object" };
    if (Object.keys(properties).length > 0) schema.properties = sortedByName(properties);
    if (required.length > 0) schema.required = required;
    const kinds = kindsOf(type);
    if (kinds.length > 0) schema["x-kubernetes-group-version-kind"] = kinds;
    if (type.atomic) schema["x-kubernetes-map-type"] = "atomic";
    const union = unionOf(type);
    if (union !== undefined) schema["x-kubernetes-unions"] = [union];
    return schema;
  }

  #field(field: FieldDescriptor): Schema {
    const schema = this.#schema(field.type);
    const value = this.#options.defaults ? (field.default ?? zeroOf(field)) : undefined;
    if (value !== undefined) schema.default = value;
    if (field.listType !== undefined) schema["x-kubernetes-list-type"] = field.listType;
    if (field.listMapKeys !== undefined) schema["x-kubernetes-list-map-keys"] = [...field.listMapKeys];
    if (field.mapType !== undefined) schema["x-kubernetes-map-type"] = field.mapType;
    if (field.patchMergeKey !== undefined) schema["x-kubernetes-patch-merge-key"] = field.patchMergeKey;
    if (field.patchStrategy.length > 0) schema["x-kubernetes-patch-strategy"] = field.patchStrategy.join(",");
    return schema;
  }

  #schema(type: FieldType): Schema {
    switch (type.kind) {
      case "struct":
        return this.type(type.struct);
      case "list":
        return { type: "array", items: this.#element(type.element) };
      case "map":
        return { type: "object", additionalProperties: this.#element(type.value) };
      default: {
        const named = namedScalars[type.kind];
        if (named !== undefined) return this.#named(named);
        const schema = { ...(scalarSchemas[type.kind] ?? { type: "string" }) };
        if (this.#options.enums && type.isEnum) schema.enum = [...(type.values ?? [])].sort();
        return schema;
      }
    }
  }

  #element(type: FieldType): Schema {
    const schema = this.#schema(type);
    const value = this.#options.defaults ? zeroOf({ type, pointer: false, omitEmpty: false }) : undefined;
    return value === undefined ? schema : { ...schema, default: value };
  }
}

/** Default of a field without explicit value: Go's zero value; undefined for pointers and omitted fields. */
function zeroOf({ type, pointer, omitEmpty }: Pick<FieldDescriptor, "type" | "pointer" | "omitEmpty">): unknown {
  if (pointer) return undefined;
  if (type.kind === "struct" || (Object.hasOwn(namedScalars, type.kind) && type.kind !== "fieldsV1")) return {};
  if (omitEmpty) return undefined;
  switch (type.kind) {
    case "string":
      return "";
    case "bool":
      return false;
    case "int32":
    case "int64":
    case "float64":
      return 0;
    default:
      return undefined;
  }
}

/** `x-kubernetes-unions` entry of a struct with a union discriminator. */
function unionOf(type: TypeDescriptor): object | undefined {
  const discriminator = type.fields.find((field) => field.unionDiscriminator);
  if (discriminator === undefined) return undefined;
  const members = type.fields.filter((field) => field !== discriminator).map(({ name }) => [name, capital(name)]);
  return { discriminator: discriminator.name, "fields-to-discriminateBy": Object.fromEntries(members) };
}

interface Kind {
  group: string;
  kind: string;
  version: string;
}

function kindsOf(type: TypeDescriptor): Kind[] {
  if (!type.isKind && type.goName !== "WatchEvent") return [];
  if (type.group !== "meta.k8s.io") return [{ group: type.group, kind: type.goName, version: type.version }];
  if (type.goName === "DeleteOptions" || type.goName === "WatchEvent") {
    return groupVersionsOfOptions().map(({ group, version }) => ({ group, kind: type.goName, version }));
  }
  return [{ group: "", kind: type.goName, version: "v1" }];
}

/** All known group versions, served or not: DeleteOptions and WatchEvent are registered in each. */
function groupVersionsOfOptions(): { group: string; version: string }[] {
  const known = [...scheme.groupVersions(), ...withoutTables];
  return known.sort((a, b) => (a.group === b.group ? compareNames(a.version, b.version) : compareNames(a.group, b.group)));
}

/** Removed versions that upstream still registers; they have no tables. */
const withoutTables = [
  { group: "apiextensions.k8s.io", version: "v1beta1" },
  { group: "apiregistration.k8s.io", version: "v1beta1" },
];

const scalarSchemas: Readonly<Record<string, Schema>> = {
  bool: { type: "boolean" },
  int32: { type: "integer", format: "int32" },
  int64: { type: "integer", format: "int64" },
  float64: { type: "number", format: "double" },
  bytes: { type: "string", format: "byte" },
  any: { type: "object" },
};

const meta = "io.k8s.apimachinery.pkg.apis.meta.v1";
const extensions = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1";

interface NamedSchema {
  name: string;
  schema: Schema;
}

/** Types with a custom JSON encoding, which have named definitions. */
const namedScalars: Readonly<Record<string, NamedSchema>> = {
  time: {
    name: `${meta}.Time`,
    schema: { description: "A point in time, RFC 3339 with whole seconds.", type: "string", format: "date-time" },
  },
  microTime: {
    name: `${meta}.MicroTime`,
    schema: { description: "A point in time, RFC 3339 with microseconds.", type: "string", format: "date-time" },
  },
  quantity: {
    name: "io.k8s.apimachinery.pkg.api.resource.Quantity",
    schema: { description: 'An amount with a suffix: "500m" is a half, "1Gi" is 2^30, "2k" is 2000.', type: "string" },
  },
  intOrString: {
    name: "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
    schema: { description: "A number, or a text: the name of a port, or a percentage.", type: "string", format: "int-or-string" },
  },
  raw: {
    name: "io.k8s.apimachinery.pkg.runtime.RawExtension",
    schema: { description: "An object of any kind.", type: "object" },
  },
  fieldsV1: {
    name: `${meta}.FieldsV1`,
    schema: { description: "A set of fields, as a tree of their names.", type: "object" },
  },
  json: { name: `${extensions}.JSON`, schema: { description: "Any JSON value." } },
  schemaOrArray: { name: `${extensions}.JSONSchemaPropsOrArray`, schema: { description: "A schema, or a list of them." } },
  schemaOrBool: { name: `${extensions}.JSONSchemaPropsOrBool`, schema: { description: "A schema, or true or false." } },
  schemaOrStrings: {
    name: `${extensions}.JSONSchemaPropsOrStringArray`,
    schema: { description: "A schema, or a list of names." },
  },
};

function describe(description: string): { description?: string } {
  return description === "" ? {} : { description };
}

function compareNames(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** A copy with its keys in ascending order of their UTF-16 units. */
export function sortedByName<T>(record: Readonly<Record<string, T>>): Record<string, T> {
  return Object.fromEntries(Object.entries(record).sort(([a], [b]) => compareNames(a, b)));
}
