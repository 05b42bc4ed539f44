import type { Random } from "./random.ts";

/** Definitions of an OpenAPI v2 document by name. */
export type Definitions = Readonly<Record<string, Schema>>;

interface Schema {
  readonly type?: string;
  readonly format?: string;
  readonly $ref?: string;
  readonly enum?: readonly unknown[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema;
  readonly required?: readonly string[];
  readonly "x-kubernetes-group-version-kind"?: readonly { group: string; version: string; kind: string }[];
}

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

/** Valid values by field name, regardless of the field's type. */
const known: Readonly<Record<string, readonly Json[]>> = {
  image: ["walk.invalid/none:1"],
  imagePullPolicy: ["IfNotPresent", "Never"],
  restartPolicy: ["Always", "Never", "OnFailure"],
  protocol: ["TCP", "UDP"],
  mountPath: ["/data"],
  schedule: ["0 0 1 1 *"],
  storage: ["1Gi"],
  accessModes: [["ReadWriteOnce"]],
  matchLabels: [{ walk: "true" }],
  labels: [{ walk: "true" }],
  selector: [{ matchLabels: { walk: "true" } }, { walk: "true" }],
  addressType: ["IPv4"],
  addresses: [["10.1.2.3"]],
  host: ["walk.example.com"],
  path: ["/walk"],
  pathType: ["Prefix"],
  verbs: [["get"]],
  apiGroups: [[""]],
  resources: [["pods"]],
};

/**
 * Generates an object of a kind from its schema: all required fields and random optional ones; names belong to the walk.
 * @returns only kind and apiVersion when the document does not define the kind.
 */
export function objectFromSchema(
  definitions: Definitions,
  kind: { apiVersion: string; kind: string; name: string },
  random: Random,
): JsonObject {
  const [version = "", group = ""] = kind.apiVersion.split("/").toReversed();
  const schema = byKind(definitions).get(`${group}/${version}/${kind.kind}`);
  const made = schema === undefined ? {} : (valueFor(definitions, schema, random, 0, "") as JsonObject); // cast: the schema of a kind is an object's
  return { ...made, apiVersion: kind.apiVersion, kind: kind.kind, metadata: { name: kind.name, labels: { walk: "true" } } };
}

const indexes = new WeakMap<Definitions, Map<string, Schema>>();

function byKind(definitions: Definitions): Map<string, Schema> {
  const known = indexes.get(definitions);
  if (known !== undefined) return known;
  const made = new Map<string, Schema>();
  for (const schema of Object.values(definitions)) {
    for (const { group, version, kind } of schema["x-kubernetes-group-version-kind"] ?? [])
      made.set(`${group}/${version}/${kind}`, schema);
  }
  indexes.set(definitions, made);
  return made;
}

function valueFor(definitions: Definitions, schema: Schema, random: Random, depth: number, name: string): Json {
  const likely = Object.hasOwn(known, name) ? known[name] : undefined;
  if (likely !== undefined && random.chance(0.9)) return structuredClone(random.pick(likely));
  if (schema.enum !== undefined && schema.enum.length > 0) return random.pick(schema.enum) as Json; // cast: values of an enum in JSON are JSON
  if (schema.$ref !== undefined) return referred(definitions, schema.$ref, random, depth, name);
  switch (schema.type) {
    case "string":
      return textOf(schema.format, random);
    case "integer":
      return random.pick([0, 1, 2, 80, 8080]);
    case "number":
      return random.pick([0, 0.5, 1]);
    case "boolean":
      return random.chance(0.5);
    case "array":
      return depth > 8 ? [] : [valueFor(definitions, schema.items ?? {}, random, depth + 1, name)];
    default:
      return fieldsOf(definitions, schema, random, depth);
  }
}

function referred(definitions: Definitions, reference: string, random: Random, depth: number, name: string): Json {
  const target = reference.slice("#/definitions/".length);
  if (target.endsWith(".Quantity")) return random.pick(["1", "100m", "64Mi"]);
  if (target.endsWith(".IntOrString")) return random.pick<Json>([80, "50%"]);
  if (target.endsWith(".ObjectMeta")) return { labels: { walk: "true" } };
  return valueFor(definitions, definitions[target] ?? {}, random, depth, name);
}

function fieldsOf(definitions: Definitions, schema: Schema, random: Random, depth: number): JsonObject {
  const made: JsonObject = {};
  if (schema.additionalProperties !== undefined) {
    made["walk"] = valueFor(definitions, schema.additionalProperties, random, depth + 1, "");
  }
  const chance = depth === 0 ? 1 : 0.45 / (depth + 1);
  for (const [field, type] of Object.entries(schema.properties ?? {})) {
    if (depth === 0 && (field === "metadata" || field === "status")) continue;
    if (!schema.required?.includes(field) && !random.chance(chance)) continue;
    made[field] = depth > 12 ? null : valueFor(definitions, type, random, depth + 1, field);
  }
  return made;
}

function textOf(format: string | undefined, random: Random): string {
  if (format === "date-time") return "2026-01-02T03:04:05Z";
  if (format === "byte") return "d2Fsaw==";
  return random.pick(["walk-a", "walk-b", "walk", "a"]);
}

const wrongValues: readonly Json[] = [
  ...[null, true, false, 0, -1, 1.5, 1e21, 2 ** 53, -(2 ** 63), 2 ** 31, "", " ", "\u0000", "../..", "Ünïcode \u{1f6a2}"],
  ...["-1", "1e1000", "99999999999999999999Gi", "0.0000000000000001", "2026-13-45T99:99:99Z", "*", "a/b/c", "$(VAR)", "{{.}}"],
  ...[[], {}, [[]], [null], [{}], { a: null }, { "": "" }, { constructor: { prototype: 1 } }],
];

/** Replaces, removes or adds one to three random fields with invalid values; modifies its argument. */
export function spoil(object: JsonObject, random: Random): JsonObject {
  for (let times = 1 + random.below(3); times > 0; times--) {
    const { parent, key } = random.pick(placesOf(object));
    switch (random.below(4)) {
      case 0:
        if (Array.isArray(parent)) parent.splice(Number(key), 1);
        else delete parent[key];
        break;
      case 1:
        put(parent, random.pick(["__proto__", "unknown", "Name", "spec", ""]), structuredClone(random.pick(wrongValues)));
        break;
      default:
        put(parent, key, structuredClone(random.pick(wrongValues)));
    }
  }
  return object;
}

/** Makes one random field very long, very wide or very deep; modifies its argument. */
export function inflate(object: JsonObject, random: Random): JsonObject {
  const { parent, key } = random.pick(placesOf(object));
  const size = random.pick([1000, 70_000, 300_000]);
  const wide = Math.ceil(size / 20);
  const deep = (levels: number): Json => JSON.parse(`${'{"a":['.repeat(levels)}${"]}".repeat(levels)}`) as Json; // cast: JSON.parse returns JSON
  const found = Array.isArray(parent) ? parent[Number(key)] : parent[key];
  const values: (() => Json)[] = [
    () => "x".repeat(size),
    () => Array.from({ length: Math.min(wide, 5000) }, () => structuredClone(found ?? "x")),
    () => Object.fromEntries(Array.from({ length: wide }, (_, index) => [`walk-${index}`, "x"])),
    () => deep(random.pick([50, 900])),
  ];
  put(parent, key, random.pick(values)());
  return object;
}

interface Place {
  parent: JsonObject | Json[];
  key: string;
}

function placesOf(value: Json, found: Place[] = []): Place[] {
  if (value === null || typeof value !== "object") return found;
  for (const key of Object.keys(value)) {
    found.push({ parent: value, key });
    placesOf((value as JsonObject)[key]!, found); // cast: its key was read from an object
  }
  return found.length === 0 ? [{ parent: value, key: "walk" }] : found;
}

function put(parent: JsonObject | Json[], key: string, value: Json): void {
  Object.defineProperty(parent, key, { value, enumerable: true, configurable: true, writable: true });
}
