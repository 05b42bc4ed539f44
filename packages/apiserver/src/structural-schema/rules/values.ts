/**
 * CEL values of custom resources, typed by their schemas. Data that does not match the schema becomes a Failure, which a rule
 * gets when it accesses it.
 * Source: apiextensions-apiserver pkg/apiserver/schema/cel/values.go
 */
import { deepEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { isJsonObject } from "@coxswain/apimachinery/objects/meta/json-value";
import { parseZonedTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Budget } from "../../cel/budget.ts";
import { parseDuration, parseTimestamp } from "../../cel/times.ts";
import { Duration, equal, Failure, type List, Mapping, noOverload, Timestamp, type Value } from "../../cel/values.ts";
import { hasFormat } from "../formats.ts";
import { additionalOf, isEmbedded, isPreserving, itemsOf, perSchema, propertyOf, type Schema } from "../schema.ts";
import { parseWordyDuration } from "./durations.ts";
import { escapeName, unescapeName } from "./escaping.ts";
import { MapList, SchemaList, SetList } from "./lists.ts";
import { withResourceFields } from "./types.ts";

/** @param isResource adds apiVersion, kind and metadata.name to the schema when it lacks them */
export function ruleValue(json: unknown, schema: Schema, isResource = isEmbedded(schema)): Value {
  if (json === null) return schema.nullable ? null : new Failure("invalid data, got null for schema with nullable=false");
  if (schema["x-kubernetes-int-or-string"] === true) {
    if (typeof json === "string") return json;
    return intOf(json) ?? new Failure("invalid data, expected XIntOrString value to be either a string or integer");
  }
  switch (schema.type) {
    case "object":
      if (!isJsonObject(json)) return new Failure("invalid data, expected a map for the provided schema with type=object");
      return objectValue(json, isResource ? withResourceFields(schema) : schema);
    case "array":
      if (!Array.isArray(json)) return new Failure("invalid data, expected an array for the provided schema with type=array");
      return listValue(json, schema);
    case "string":
      return typeof json === "string" ? textValue(json, schema.format ?? "") : unexpected("string", json);
    case "number":
      return typeof json === "number" || typeof json === "bigint" ? Number(json) : unexpected("float", json);
    case "integer":
      return intOf(json) ?? unexpected("int", json);
    case "boolean":
      return typeof json === "boolean" ? json : unexpected("bool", json);
    default:
      return new Failure(
        `invalid type, expected object, array, number, integer, boolean or string, or no type with x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields is true, got ${schema.type ?? ""}`,
      );
  }
}

function intOf(json: unknown): bigint | undefined {
  if (typeof json === "bigint") return json;
  return typeof json === "number" && Number.isInteger(json) ? BigInt(json) : undefined;
}

function unexpected(wanted: string, json: unknown): Failure {
  const name = Array.isArray(json) ? "[]interface {}" : isJsonObject(json) ? "map[string]interface {}" : undefined;
  const scalar =
    typeof json === "string" ? "string" : typeof json === "boolean" ? "bool" : intOf(json) === undefined ? "float64" : "int64";
  return new Failure(`invalid data, expected ${wanted}, got ${name ?? scalar}`);
}

function objectValue(json: Readonly<Record<string, unknown>>, schema: Schema): Value {
  const additional = additionalOf(schema);
  if (schema.properties !== undefined) return new SchemaObject(json, schema);
  if (additional !== undefined) return new SchemaMap(json, additional);
  if (isPreserving(schema)) return new SchemaObject(json, schema);
  return new Failure(
    "invalid object type, expected either Properties or AdditionalProperties with Allows=true and non-empty Schema",
  );
}

function listValue(json: readonly unknown[], schema: Schema): List | Failure {
  const items = itemsOf(schema);
  if (items === undefined) return new Failure("invalid array type, expected Items with a non-empty Schema");
  const make = (i: number): Value => ruleValue(json[i], items);
  if (schema["x-kubernetes-list-type"] === "set") return new SetList(json.length, make);
  if (schema["x-kubernetes-list-type"] !== "map") return new SchemaList(json.length, make);
  return new MapList(json.length, make, mapKeysOf(schema));
}

/** `x-kubernetes-list-map-keys` as escaped property names; computed once per schema. */
const mapKeysOf = perSchema((schema: Schema) =>
  (schema["x-kubernetes-list-map-keys"] ?? []).flatMap((key) => escapeName(key) ?? []),
);

function textValue(text: string, format: string): Value {
  switch (format) {
    case "byte":
      if (text !== "" && !hasFormat("byte", text))
        return new Failure(`Invalid byte formatted string ${text}: illegal base64 data`);
      return Buffer.from(text, "base64");
    case "duration": {
      const nanos = parseDuration(text) ?? parseWordyDuration(text);
      return nanos === undefined
        ? new Failure(`Invalid duration ${text}: unable to parse ${text} as duration`)
        : new Duration(nanos);
    }
    case "date":
      return (
        dateOf(text) ?? new Failure(`Invalid date formatted string ${text}: parsing time ${JSON.stringify(text)} as "2006-01-02"`)
      );
    case "date-time":
      if (text === "") return new Timestamp(0n, 0);
      return (
        parseTimestamp(text) ?? new Failure(`Invalid date-time formatted string ${text}: parsing time ${JSON.stringify(text)}`)
      );
    default:
      return text;
  }
}

function dateOf(text: string): Timestamp | undefined {
  const time = parseZonedTime(`${text}T00:00:00Z`);
  return time && new Timestamp(BigInt(time.seconds), 0);
}

/** An object that creates each field value on first access. */
abstract class SchemaMapping extends Mapping {
  protected readonly json: Readonly<Record<string, unknown>>;
  readonly #made = new Map<string, Value>();
  #names: readonly string[] | undefined;

  constructor(json: Readonly<Record<string, unknown>>) {
    super();
    this.json = json;
  }

  get size(): number {
    return this.names.length;
  }

  protected get names(): readonly string[] {
    this.#names ??= Object.keys(this.json);
    return this.#names;
  }

  protected made(name: string, schema: Schema): Value | undefined {
    if (!Object.hasOwn(this.json, name)) return undefined;
    let value = this.#made.get(name);
    if (value === undefined) {
      value = ruleValue(this.json[name], schema);
      this.#made.set(name, value);
    }
    return value;
  }
}

class SchemaMap extends SchemaMapping {
  readonly #values: Schema;

  constructor(json: Readonly<Record<string, unknown>>, values: Schema) {
    super(json);
    this.#values = values;
  }

  keys(): readonly string[] {
    return this.names;
  }

  protected override lookUp(key: Value): Value | undefined {
    return typeof key === "string" ? this.made(key, this.#values) : noOverload();
  }

  equals(other: Mapping, budget: Budget): boolean | Failure {
    if (this.size !== other.size) return false;
    for (const key of this.keys()) {
      const found = other.find(key, budget);
      if (found === undefined) return false;
      const isEqual = equal(this.lookUp(key)!, found, budget);
      if (isEqual !== true) return isEqual;
    }
    return true;
  }
}

/** An object with properties. Null fields count as absent; fields unknown to the schema are not accessible. */
class SchemaObject extends SchemaMapping {
  readonly #schema: Schema;

  constructor(json: Readonly<Record<string, unknown>>, schema: Schema) {
    super(json);
    this.#schema = schema;
  }

  *keys(): Iterable<string> {
    for (const name of this.names) if (propertyOf(this.#schema, name)) yield escapeName(name) ?? name;
  }

  protected override lookUp(key: Value): Value | undefined {
    if (typeof key !== "string") return noOverload();
    const name = unescapeName(key);
    return name === undefined ? undefined : this.#named(name);
  }

  #named(name: string): Value | undefined {
    const schema = propertyOf(this.#schema, name);
    return schema === undefined || this.json[name] === null ? undefined : this.made(name, schema);
  }

  equals(other: Mapping, budget: Budget): boolean | Failure {
    if (!(other instanceof SchemaObject)) return noOverload();
    if (this.size !== other.size) return false;
    for (const name of this.names) {
      budget.spend();
      const isEqual = this.#isEqualIn(name, other, budget);
      if (isEqual !== true) return isEqual;
    }
    return true;
  }

  #isEqualIn(name: string, other: SchemaObject, budget: Budget): boolean | Failure {
    const [own, its] = [this.#named(name), other.#named(name)];
    if (own !== undefined && its !== undefined) return equal(own, its, budget);
    if (own !== undefined || its !== undefined) return false;
    // Not accessible on either side; preserved unknown fields are compared as JSON when both have them.
    const isKept = propertyOf(this.#schema, name) === undefined && Object.hasOwn(other.json, name);
    if (!isKept) return true;
    spendOnJson(this.json[name], budget);
    return deepEqual(this.json[name], other.json[name]);
  }
}

/** Charges a deep comparison. */
function spendOnJson(json: unknown, budget: Budget): void {
  budget.spend();
  if (typeof json === "string") budget.spendOnText(json.length);
  else if (Array.isArray(json)) for (const item of json) spendOnJson(item, budget);
  else if (isJsonObject(json))
    for (const [name, value] of Object.entries(json)) {
      budget.spendOnText(name.length);
      spendOnJson(value, budget);
    }
}
