/** The largest objects of a kind: each of its lists and maps in turn, with as many items as a request's body may have. */
import { maxBodyValues } from "@coxswain/apimachinery/objects/codec/json-parse";
import type { FieldDescriptor, FieldType, TypeDescriptor } from "@coxswain/apimachinery/objects/schema/descriptor";

type Fields = Record<string, unknown>;

/** A list or map of a kind, at any depth. */
export interface RepeatedField {
  /** From the object to the field; a list or map on the way gets one item. */
  readonly path: readonly FieldDescriptor[];
  /** `spec.containers[].env` */
  readonly name: string;
}

/** All lists and maps of a kind. A type within itself (a schema's properties) is entered once. */
export function repeatedFields(type: TypeDescriptor): RepeatedField[] {
  return type.fields.flatMap((field) => within(field, [], [type]));
}

function within(field: FieldDescriptor, before: readonly FieldDescriptor[], seen: readonly TypeDescriptor[]): RepeatedField[] {
  const path = [...before, field];
  const found: RepeatedField[] = [];
  let { type } = field;
  if (isRepeated(type)) found.push({ path, name: nameOf(path) });
  while (isRepeated(type)) type = itemType(type);
  if (type.kind !== "struct" || seen.includes(type.struct)) return found;
  const inner = [...seen, type.struct];
  return [...found, ...type.struct.fields.flatMap((each) => within(each, path, inner))];
}

type RepeatedType = Extract<FieldType, { kind: "list" | "map" }>;

const isRepeated = (type: FieldType): type is RepeatedType => type.kind === "list" || type.kind === "map";

const itemType = (type: RepeatedType): FieldType => (type.kind === "list" ? type.element : type.value);

const nameOf = (path: readonly FieldDescriptor[]): string =>
  path
    .map(({ name, type }, at) =>
      at === path.length - 1 || !isRepeated(type) ? name : `${name}${type.kind === "list" ? "[]" : "{}"}`,
    )
    .join(".");

/**
 * @param valid a valid object of the kind; what it has on the path is kept
 * @param count number of items of the repeated field
 * @param mark part of each item's values, to make two objects differ in all of them
 */
export function withRepeated(valid: object, { path }: RepeatedField, count: number, mark = ""): Fields {
  const object = structuredClone(valid) as Fields;
  let at = object;
  for (const [i, field] of path.entries()) {
    if (i === path.length - 1) at[field.name] = items(field, count, mark, at[field.name]);
    else at = entered(at, field);
  }
  return object;
}

/** How many items fit into a body of `bytes`, by its bytes and its values. */
export function mostItems(valid: object, field: RepeatedField, bytes = 3_000_000): number {
  const [few, more] = [2, 102].map((count) => {
    const json = JSON.stringify(withRepeated(valid, field, count));
    return { bytes: json.length, values: (json.match(/[:[{]/g) ?? []).length + (json.match(/,/g) ?? []).length / 8 };
  }) as [{ bytes: number; values: number }, { bytes: number; values: number }];
  // The numbers of later items are longer.
  return Math.floor(Math.min((maxBodyValues * 100) / (more.values - few.values), (bytes * 100) / (more.bytes - few.bytes + 400)));
}

/** The struct in this field: of the first item where the field is a list or map. Made when absent. */
function entered(parent: Fields, field: FieldDescriptor): Fields {
  if (field.type.kind === "list") {
    parent[field.name] ??= [someValue(field.type.element, field.name, 0, "")];
    return (parent[field.name] as Fields[])[0] as Fields;
  }
  if (field.type.kind === "map") {
    parent[field.name] ??= { k0: someValue(field.type.value, field.name, 0, "") };
    return Object.values(parent[field.name] as Fields)[0] as Fields;
  }
  parent[field.name] ??= {};
  return parent[field.name] as Fields;
}

function items(field: FieldDescriptor, count: number, mark: string, present: unknown): unknown {
  const type = field.type as RepeatedType;
  // An item of the valid object has what its validation asks for.
  const sample = Array.isArray(present) ? present[0] : typeof present === "object" ? Object.values(present ?? {})[0] : undefined;
  const item = (at: number): unknown => {
    const made = someValue(itemType(type), field.name, at, mark);
    return isFields(sample) && isFields(made) ? { ...sample, ...made } : made;
  };
  const numbers = Array.from({ length: count }, (_, at) => at);
  return type.kind === "list" ? numbers.map(item) : Object.fromEntries(numbers.map((at) => [keyOf(field.name, at), item(at)]));
}

const isFields = (value: unknown): value is Fields => typeof value === "object" && value !== null && !Array.isArray(value);

/** Quotas and resources accept only qualified names besides the standard ones. */
const keyOf = (field: string, at: number): string =>
  /limits|requests|capacity|hard|used|allocat|max|min|default|overhead/i.test(field) ? `a.b/k${at}` : `k${at}`;

/** Fields that name an item among its siblings, or that most validations require. */
const needed =
  /^(name|key|operator|type|kind|image|mountPath|devicePath|port|containerPort|hostPort|ip|number|address|url|host|values|resources|verbs|apiGroups|uid|apiVersion|manager|fieldsType|driver|nodeID|topologyKey|jsonPath|rule|status|reason)$/;

function someValue(type: FieldType, name: string, at: number, mark: string, depth = 0): unknown {
  switch (type.kind) {
    case "struct": {
      const { struct } = type;
      const object: Fields = {};
      if (depth > 2) return object;
      for (const field of struct.fields) {
        const isNeeded = field.required || needed.test(field.name);
        if (isNeeded) object[field.name] = someValue(field.type, field.name, at, mark, depth + 1);
      }
      return object;
    }
    case "list":
      return [someValue(type.element, name, 0, mark, depth + 1)];
    case "map":
      return { a: someValue(type.value, name, at, mark, depth + 1) };
    case "string":
      return text(type.values, name, at, mark);
    case "bool":
      return false;
    case "int32":
    case "int64":
      return /port|number/i.test(name) ? (at % 65_535) + 1 : at + 1;
    case "float64":
      return at;
    case "bytes":
      return "YWE=";
    case "time":
      return "2021-12-07T20:16:20Z";
    case "microTime":
      return "2021-12-07T20:16:20.000000Z";
    case "quantity":
      return "1";
    case "intOrString":
      return (at % 65_535) + 1;
    case "raw":
      return {};
    case "fieldsV1":
      return { "f:data": { [`f:k${at}`]: {} } };
    case "schemaOrStrings":
      return ["a"];
    case "schemaOrArray":
    case "schemaOrBool":
      return { type: "string" };
    case "json":
    case "any":
      return `v${at}`;
  }
}

function text(values: readonly string[] | undefined, name: string, at: number, mark: string): string {
  if (name === "operator") return "Exists";
  if (name === "apiVersion") return "v1";
  if (values !== undefined && values.length > 0) return values[at % values.length] as string;
  if (/path$/i.test(name)) return `/${mark}k${at}`;
  if (/ip$|ips$|^addresses$/i.test(name)) return `10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`;
  if (/cidr|^externalIP/i.test(name)) return `10.${at >> 16}.${(at >> 8) & 255}.${at & 255}/32`;
  if (name === "image") return "i";
  return `${mark}k${at}`;
}
