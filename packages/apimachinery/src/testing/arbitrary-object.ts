import { setOwn } from "../objects/codec/json-parse.ts";
import { formatGroupVersion } from "../objects/meta/group-version.ts";
import type { FieldType, TypeDescriptor } from "../objects/schema/descriptor.ts";
import { scheme } from "../objects/schema/scheme.ts";
import fc from "./fast-check.ts";
import { type Random, randomOf } from "./random.ts";

type Fields = Record<string, unknown>;

/**
 * Arbitrary objects of a type: a random subset of fields with well-typed values, including unusual ones. Values that
 * validation would reject (names, enumerations) occur, too. Kinds have apiVersion and kind set. Failures are reproduced
 * with the seed and path that fast-check prints.
 * @param type a kind or any other struct
 */
export function arbitraryObject(type: TypeDescriptor): fc.Arbitrary<Fields> {
  return fc.noShrink(fc.integer()).map((seed) => {
    const object = anObject(type, 0, randomOf(seed));
    if (type.isKind) Object.assign(object, { apiVersion: formatGroupVersion(type), kind: type.goName });
    return object;
  });
}

const maxDepth = 7;

function anObject(type: TypeDescriptor, depth: number, random: Random): Fields {
  const object: Fields = {};
  if (depth > maxDepth) return object;
  // Types with many fields get a smaller share of them, so that objects stay small.
  const share = Math.min(0.7, 6 / type.fields.length);
  for (const field of type.fields) {
    if (random() > share) continue;
    // Protobuf does not encode apiVersion and kind of nested objects.
    if (type.isKind && (field.name === "apiVersion" || field.name === "kind")) continue;
    object[field.name] = aValue(field.type, depth, random);
  }
  return object;
}

function aValue(type: FieldType, depth: number, random: Random): unknown {
  switch (type.kind) {
    case "struct":
      return anObject(type.struct, depth + 1, random);
    case "list":
      return Array.from({ length: below(3, random) }, () => aValue(type.element, depth + 1, random));
    case "map":
      return aMap(random, () => aValue(type.value, depth + 1, random));
    case "string":
      return oneOf(texts, random);
    case "bool":
      return random() < 0.5;
    case "int32":
      return oneOf([0, 1, -1, 80, 2147483647, -2147483648], random);
    case "int64":
      return oneOf([0, 1, -1, 2147483648, 9007199254740993n, 9223372036854775807n, -9223372036854775808n], random);
    case "float64":
      return oneOf([0, 0.5, -1.25, 3, 1e21, 1e-7], random);
    case "bytes":
      return Buffer.from(Array.from({ length: below(5, random) }, () => below(256, random))).toString("base64");
    case "time":
      return oneOf(["2021-12-07T20:16:20Z", "1969-12-31T23:59:59Z", "2021-12-07T20:16:20.5+01:00"], random);
    case "microTime":
      return oneOf(["2021-12-07T20:16:20.000001Z", "1969-12-31T23:59:59.999999Z", "2021-12-07T20:16:20.123456+01:00"], random);
    case "quantity":
      return oneOf(["0", "1", "100m", "0.5", "1Gi", "1e3", "12345678901234567890", "-3k", "1.5Mi"], random);
    case "intOrString":
      return oneOf([0, 8080, -1, "25%", "http", ""], random);
    case "raw":
      return aMap(random, () => anyValue(depth + 1, random));
    case "fieldsV1":
      return { "f:metadata": { "f:labels": { ".": {}, [`f:${oneOf(texts, random)}`]: {} } } };
    case "json":
    case "any":
      return anyValue(depth + 1, random);
    case "schemaOrArray":
      return random() < 0.5 ? aSchema(depth, random) : [aSchema(depth, random), aSchema(depth, random)];
    case "schemaOrBool":
      return random() < 0.5 ? aSchema(depth, random) : random() < 0.5;
    case "schemaOrStrings":
      return random() < 0.5 ? aSchema(depth, random) : ["a", oneOf(texts, random)];
  }
}

function aSchema(depth: number, random: Random): Fields {
  return anObject(scheme.type("apiextensions/v1.JSONSchemaProps") as TypeDescriptor, depth + 1, random);
}

function anyValue(depth: number, random: Random): unknown {
  const choice = below(depth > maxDepth ? 4 : 6, random);
  if (choice === 0) return oneOf(texts, random);
  if (choice === 1) return oneOf([0, -1, 1.5, 9007199254740993n], random);
  if (choice === 2) return random() < 0.5;
  if (choice === 3) return "";
  if (choice === 4) return Array.from({ length: below(3, random) }, () => anyValue(depth + 1, random));
  return aMap(random, () => anyValue(depth + 1, random));
}

function aMap(random: Random, value: () => unknown): Fields {
  const map: Fields = {};
  for (let i = below(4, random); i > 0; i--) setOwn(map, oneOf(keys, random), value());
  return map;
}

const keys = ["a", "b", "app.kubernetes.io/name", "__proto__", "constructor", "10", "é", "😀", "", "y", "<<"];
const texts = [
  "",
  "a",
  "web-0",
  "true",
  "null",
  "017",
  "1e3",
  "0x1F",
  "1:30",
  "2021-12-07",
  "~",
  " padded ",
  "two\nlines\n",
  "tab\t#: -",
  "- a: b",
  "'\"\\",
  "<>&\u2028",
  "héllo 😀",
  "\u0001\u007f\u0085\ufeff",
  "x".repeat(200),
];

function oneOf<T>(list: readonly T[], random: Random): T {
  return list[below(list.length, random)] as T;
}

function below(n: number, random: Random): number {
  return Math.floor(random() * n);
}
