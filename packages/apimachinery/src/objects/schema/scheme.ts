import type { GroupVersionKind } from "../meta/group-version.ts";
import type {
  FieldDescriptor,
  FieldRow,
  FieldType,
  MessageField,
  ScalarKind,
  Table,
  TypeDescriptor,
  TypeRow,
} from "./descriptor.ts";
import { tables as generatedTables } from "./kinds/tables.ts";

/** Registry of the built-in types. Descriptors are created lazily and cached. */
interface Scheme {
  /** @returns undefined for kinds that are not built in */
  kind(gvk: GroupVersionKind): TypeDescriptor | undefined;
  /** Finds a type by OpenAPI name (`io.k8s.api.core.v1.PodSpec`) or table and name (`core/v1.PodSpec`). */
  type(name: string): TypeDescriptor | undefined;
  /** All kinds, without those shared by all group versions (DeleteOptions, …). */
  kinds(): GroupVersionKind[];
  groupVersions(): { group: string; version: string }[];
}

/** Kinds that are registered in every group version. */
const sharedKinds = new Set([
  "ListOptions",
  "GetOptions",
  "DeleteOptions",
  "CreateOptions",
  "UpdateOptions",
  "PatchOptions",
  "ApplyOptions",
  "WatchEvent",
]);
/** Meta kinds that are served as `v1` of the core group. */
const unversionedKinds = new Set(["Status", "APIVersions", "APIGroup", "APIGroupList", "APIResourceList"]);

/** Tables of types that are never stored; their empty lists are written as `[]`. */
const neverStored = new Set(["meta", "authentication", "authorization", "admission", "version", "imagepolicy"]);

const tables = generatedTables as Readonly<Record<string, Table>>; // cast: generate-kinds writes tables of this form
const folderByGroup = new Map(Object.entries(tables).map(([folder, table]) => [`${table.group}/${table.version}`, folder]));
/** Made on first use, as are the two below: of the tables, which do not change. */
const types = new Map<string, StructType>();

/** @param folder the table, e.g. `core/v1` @param typeName any struct in the table */
function structType(folder: string, typeName: string): StructType | undefined {
  const key = `${folder}.${typeName}`;
  const known = types.get(key);
  if (known !== undefined) return known;
  const table = tables[folder];
  if (table === undefined || !Object.hasOwn(table.types, typeName)) return undefined;
  const row = table.types[typeName]!;
  if (row.alias !== undefined) {
    const target = splitRef(row.alias, folder);
    return target === undefined ? undefined : structType(target.folder, target.name);
  }
  const made = new StructType(folder, table, typeName, row);
  types.set(key, made);
  return made;
}

/** `core/v1.PodSpec` or `.PodSpec` → folder and name; undefined for scalars, lists and maps. */
function splitRef(ref: string, folder: string): { folder: string; name: string } | undefined {
  if (/^(\*|\[\]|map:)/.test(ref)) return undefined;
  const dot = ref.lastIndexOf(".");
  if (dot < 0) return undefined;
  return { folder: dot === 0 ? folder : ref.slice(0, dot), name: ref.slice(dot + 1) };
}

class StructType implements TypeDescriptor {
  readonly name: string;
  readonly goName: string;
  readonly goPackage: string;
  readonly group: string;
  readonly version: string;
  readonly atomic: boolean;
  readonly jsonOnly: boolean;
  readonly isKind: boolean;
  readonly writesEmptyLists: boolean;
  readonly #folder: string;
  readonly #row: TypeRow;
  #fields: FieldDescriptor[] | undefined;
  #byName: Map<string, FieldDescriptor> | undefined;
  #message: MessageField[] | undefined;

  constructor(folder: string, table: Table, goName: string, row: TypeRow) {
    this.#folder = folder;
    this.#row = row;
    this.goName = goName;
    this.goPackage = table.goPackage.slice(table.goPackage.lastIndexOf("/") + 1);
    this.name = openApiName(table.goPackage, goName);
    this.group = table.group;
    this.version = table.version;
    this.atomic = row.markers?.includes("structType=atomic") ?? false;
    this.jsonOnly = row.markers?.includes("protobuf=false") ?? false;
    this.isKind = row.fields?.some((f) => isTypeMeta(f, folder)) ?? false;
    this.writesEmptyLists = neverStored.has(folder.slice(0, folder.indexOf("/"))) || goName.endsWith("List");
  }

  get fields(): readonly FieldDescriptor[] {
    this.#fields ??= (this.#row.fields ?? []).flatMap((row) => fieldsOf(row, this.#folder, this.goName));
    return this.#fields;
  }

  get message(): readonly MessageField[] {
    this.#message ??= (this.#row.fields ?? [])
      .filter((row) => row[2] !== 0)
      .map((row) => messageField(row, this.#folder, this.goName))
      .sort((a, b) => a.number - b.number);
    return this.#message;
  }

  field(name: string): FieldDescriptor | undefined {
    this.#byName ??= new Map(this.fields.map((f) => [f.name, f]));
    return this.#byName.get(name);
  }
}

function isTypeMeta(row: FieldRow, folder: string): boolean {
  return row[0] === "" && (row[1] === "meta/v1.TypeMeta" || (folder === "meta/v1" && row[1] === ".TypeMeta"));
}

/** `k8s.io/api/core/v1` and `Pod` → `io.k8s.api.core.v1.Pod`. */
function openApiName(goPackage: string, goName: string): string {
  const [host, ...path] = goPackage.split("/") as [string, ...string[]]; // cast: split returns one part at least
  return [...host.split(".").reverse(), ...path, goName].join(".");
}

function fieldsOf(row: FieldRow, folder: string, declaredBy: string): FieldDescriptor[] {
  const [name, ref, , flags, extra = {}] = row;
  if (name === "" && flags.includes("i")) {
    const type = typeOf(ref, folder);
    return type.kind === "struct" ? type.struct.fields.map((f) => ({ ...f, declaredBy: type.struct.goName })) : [];
  }
  const pointer = ref.startsWith("*");
  const type = typeOf(pointer ? ref.slice(1) : ref, folder);
  const omitEmpty = flags.includes("o");
  return [
    {
      name,
      type,
      pointer,
      omitEmpty,
      optional: flags.includes("p"),
      required: isRequired(name, type, pointer, omitEmpty),
      deprecated: flags.includes("d"),
      unionDiscriminator: flags.includes("u"),
      ...(extra.listType !== undefined && { listType: extra.listType }),
      ...(extra.listMapKeys !== undefined && { listMapKeys: extra.listMapKeys }),
      ...(extra.mapType !== undefined && { mapType: extra.mapType }),
      patchStrategy: extra.patchStrategy === undefined ? [] : extra.patchStrategy.split(","),
      ...(extra.patchMergeKey !== undefined && { patchMergeKey: extra.patchMergeKey }),
      ...(extra.default !== undefined && { default: extra.default }),
      declaredBy,
    },
  ];
}

/** Same rule as in the generated TypeScript types: decoding sets the properties that are not optional there. */
function isRequired(name: string, type: FieldType, pointer: boolean, omitEmpty: boolean): boolean {
  if (pointer) return false;
  switch (type.kind) {
    case "time":
    case "microTime":
    case "raw":
    case "json":
      return false;
    case "struct":
      return name === "metadata" || name === "spec" || !omitEmpty;
    default:
      return !omitEmpty;
  }
}

function messageField(row: FieldRow, folder: string, declaredBy: string): MessageField {
  const [name, ref, number, flags] = row;
  if (name !== "") {
    const field = fieldsOf(row, folder, declaredBy)[0]!;
    return { number, name, type: field.type, pointer: field.pointer, omitEmpty: field.omitEmpty, required: field.required };
  }
  return { number, name: undefined, type: typeOf(ref, folder), pointer: false, omitEmpty: flags.includes("o"), required: false };
}

/** Named Go slices that are nested messages in protobuf. Source: the `nullable` marker of their declarations */
const wrappedLists = new Set(["Verbs", "ExtraValue"]);

const scalars: Readonly<Record<string, { kind: ScalarKind; goType: string }>> = {
  string: { kind: "string", goType: "string" },
  UID: { kind: "string", goType: "types.UID" },
  bool: { kind: "bool", goType: "bool" },
  int32: { kind: "int32", goType: "int32" },
  int64: { kind: "int64", goType: "int64" },
  float64: { kind: "float64", goType: "float64" },
  "[]byte": { kind: "bytes", goType: "[]uint8" },
  any: { kind: "any", goType: "interface {}" },
  Time: { kind: "time", goType: "v1.Time" },
  MicroTime: { kind: "microTime", goType: "v1.MicroTime" },
  Quantity: { kind: "quantity", goType: "resource.Quantity" },
  IntOrString: { kind: "intOrString", goType: "intstr.IntOrString" },
  RawExtension: { kind: "raw", goType: "runtime.RawExtension" },
  FieldsV1: { kind: "fieldsV1", goType: "v1.FieldsV1" },
  JSON: { kind: "json", goType: "v1.JSON" },
  JSONSchemaPropsOrArray: { kind: "schemaOrArray", goType: "v1.JSONSchemaPropsOrArray" },
  JSONSchemaPropsOrBool: { kind: "schemaOrBool", goType: "v1.JSONSchemaPropsOrBool" },
  JSONSchemaPropsOrStringArray: { kind: "schemaOrStrings", goType: "v1.JSONSchemaPropsOrStringArray" },
};

function typeOf(ref: string, folder: string): FieldType {
  if (Object.hasOwn(scalars, ref)) return scalars[ref]!;
  if (ref.startsWith("*")) return typeOf(ref.slice(1), folder);
  if (ref.startsWith("[]")) {
    const element = typeOf(ref.slice(2), folder);
    return { kind: "list", element, wrapped: false, goType: `[]${element.goType}` };
  }
  if (ref.startsWith("map:")) {
    const value = typeOf(ref.slice(4), folder);
    return { kind: "map", value, goType: `map[string]${value.goType}` };
  }
  const target = splitRef(ref, folder);
  if (target === undefined) throw new Error(`unknown type ${ref} in ${folder}`);
  const table = tables[target.folder];
  const row = table?.types[target.name];
  if (table === undefined || row === undefined) throw new Error(`unknown type ${ref} in ${folder}`);
  const goType = `${table.goPackage.slice(table.goPackage.lastIndexOf("/") + 1)}.${target.name}`;
  if (row.alias === undefined) return { kind: "struct", struct: structType(target.folder, target.name)!, goType };
  const type = typeOf(row.alias, target.folder);
  if (type.kind === "struct") return type;
  if (type.kind === "list") return { ...type, wrapped: wrappedLists.has(target.name), goType };
  if (type.kind === "map") return { ...type, goType };
  const isEnum = row.markers?.includes("enum") ?? false;
  return { ...type, goType, ...(row.enum !== undefined && { values: row.enum }), ...(isEnum && { isEnum }) };
}

const byOpenApiName = new Map<string, { folder: string; name: string }>();

function findType(name: string): TypeDescriptor | undefined {
  const direct = /^([a-z]+\/\w+)\.(\w+)$/.exec(name);
  if (direct !== null) return structType(direct[1]!, direct[2]!);
  if (byOpenApiName.size === 0) {
    for (const [folder, table] of Object.entries(tables)) {
      for (const typeName of Object.keys(table.types))
        byOpenApiName.set(openApiName(table.goPackage, typeName), { folder, name: typeName });
    }
  }
  const found = byOpenApiName.get(name);
  return found === undefined ? undefined : structType(found.folder, found.name);
}

function findKind(gvk: GroupVersionKind): TypeDescriptor | undefined {
  if (gvk.group === "meta.k8s.io" && (gvk.version === "v1" || gvk.version === "v1beta1")) {
    const type = structType("meta/v1", gvk.kind);
    return type?.isKind || gvk.kind === "WatchEvent" ? type : undefined;
  }
  const folder = folderByGroup.get(`${gvk.group}/${gvk.version}`);
  if (folder === undefined) return undefined;
  const type = structType(folder, gvk.kind);
  if (type !== undefined) return type.isKind ? type : undefined;
  if (sharedKinds.has(gvk.kind) || (folder === "core/v1" && unversionedKinds.has(gvk.kind)))
    return structType("meta/v1", gvk.kind);
  return undefined;
}

const kindCache = new Map<string, TypeDescriptor>();

export const scheme: Scheme = {
  kind(gvk) {
    const key = `${gvk.group}/${gvk.version}/${gvk.kind}`;
    const cached = kindCache.get(key);
    if (cached !== undefined) return cached;
    const found = findKind(gvk);
    if (found !== undefined) kindCache.set(key, found); // only existing kinds, so that requests cannot grow the cache
    return found;
  },
  type: findType,
  kinds: () =>
    Object.entries(tables).flatMap(([folder, table]) =>
      folder === "meta/v1" || folder === "version/info"
        ? []
        : Object.keys(table.types)
            .filter((name) => structType(folder, name)?.isKind)
            .map((kind) => ({ group: table.group, version: table.version, kind })),
    ),
  groupVersions: () =>
    Object.entries(tables)
      .filter(([folder]) => folder !== "meta/v1" && folder !== "version/info")
      .map(([, table]) => ({ group: table.group, version: table.version })),
};
