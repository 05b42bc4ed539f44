/**
 * Validates the OpenAPI v2 document of an aggregated server. The document is untrusted: anything that does not match the
 * specification is rejected here, so that later code can rely on its structure.
 * Source: https://swagger.io/specification/v2/; kube-openapi pkg/handler PruneDefaults
 */
import { isJsonObject } from "@coxswain/apimachinery/objects/meta/json-value";
import type { PathItem, Schema } from "@coxswain/apimachinery/objects/schema/openapi/document";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";

export interface SpecDocument {
  readonly paths: ReadonlyMap<string, PathItem>;
  /** Without default values, which clients would mistake for server-side defaults. */
  readonly definitions: ReadonlyMap<string, Schema>;
}

/** Maximum nesting of schemas, to bound recursion. */
const deepest = 100;
/**
 * Limit of the values of one path or definition. Each one is processed in one step, here and when documents are merged, which takes
 * about 80 ms at the limit.
 */
const mostValues = 50_000;

/** Yields after each path and definition. @param document parsed JSON. @throws Error with the path of the first problem. */
export function* readSpec(document: unknown): Steps<SpecDocument> {
  const { paths, definitions } = object(document, "the document");
  const read = { paths: new Map<string, PathItem>(), definitions: new Map<string, Schema>() };
  for (const [path, item] of entries(paths, "paths")) {
    checkSize(item, `paths.${path}`);
    read.paths.set(path, pathItem(item, `paths.${path}`));
    yield;
  }
  for (const [name, one] of entries(definitions, "definitions")) {
    checkSize(one, `definitions.${name}`);
    // Cast: the rules of schemas have checked it.
    read.definitions.set(name, schema(one, `definitions.${name}`, true, 0) as Schema);
    yield;
  }
  return read;
}

/** @throws Error when there are too many values */
function checkSize(value: unknown, path: string): void {
  const waiting = [value];
  for (let count = 0; waiting.length > 0; count++) {
    if (count > mostValues) throw new Error(`${path} has more than ${mostValues} values`);
    const next = waiting.pop();
    // Cast: read by its own keys.
    if (typeof next === "object" && next !== null) for (const name in next) waiting.push((next as Record<string, unknown>)[name]);
  }
}

type Rule =
  | "text"
  | "texts"
  | "names"
  | "flag"
  | "number"
  | "list"
  | "schema"
  | "schemas"
  | "schemaMap"
  | "schemaOrFlag"
  | "items";

const schemaRules: ReadonlyMap<string, Rule> = new Map(
  Object.entries({
    $ref: "text",
    additionalProperties: "schemaOrFlag",
    allOf: "schemas",
    description: "text",
    discriminator: "text",
    enum: "list",
    exclusiveMaximum: "flag",
    exclusiveMinimum: "flag",
    format: "text",
    items: "items",
    maxItems: "number",
    maxLength: "number",
    maxProperties: "number",
    maximum: "number",
    minItems: "number",
    minLength: "number",
    minProperties: "number",
    minimum: "number",
    multipleOf: "number",
    pattern: "text",
    properties: "schemaMap",
    readOnly: "flag",
    required: "texts",
    title: "text",
    type: "names",
    uniqueItems: "flag",
  } satisfies Record<string, Rule>),
);

const operationRules: ReadonlyMap<string, Rule> = new Map(
  Object.entries({
    consumes: "texts",
    deprecated: "flag",
    description: "text",
    operationId: "text",
    produces: "texts",
    schemes: "texts",
    summary: "text",
    tags: "texts",
  } satisfies Record<string, Rule>),
);

const parameterRules: ReadonlyMap<string, Rule> = new Map(
  Object.entries({
    $ref: "text",
    description: "text",
    format: "text",
    in: "text",
    name: "text",
    required: "flag",
    schema: "schema",
    type: "text",
    uniqueItems: "flag",
  } satisfies Record<string, Rule>),
);

const responseRules: ReadonlyMap<string, Rule> = new Map([
  ["$ref", "text"],
  ["description", "text"],
  ["schema", "schema"],
]);

const operationNames = ["get", "put", "post", "delete", "options", "head", "patch"];

function pathItem(value: unknown, path: string): PathItem {
  return Object.fromEntries(
    Object.entries(object(value, path)).map(([name, member]) => {
      const below = `${path}.${name}`;
      if (name === "parameters")
        return [name, array(member, below).map((one, i) => ruled(one, `${below}[${i}]`, parameterRules, false, 0))];
      return [name, operationNames.includes(name) ? operation(member, below) : member];
    }),
  );
}

function operation(value: unknown, path: string): object {
  // Cast: the rules of operations have checked it.
  const read = ruled(value, path, operationRules, false, 0) as Record<string, unknown>;
  const { parameters, responses } = read;
  return {
    ...read,
    ...(parameters === undefined
      ? {}
      : {
          parameters: array(parameters, `${path}.parameters`).map((one, i) =>
            ruled(one, `${path}.parameters[${i}]`, parameterRules, false, 0),
          ),
        }),
    responses: Object.fromEntries(
      entries(responses, `${path}.responses`).map(([code, one]) => [
        code,
        code.startsWith("x-") ? one : ruled(one, `${path}.responses.${code}`, responseRules, false, 0),
      ]),
    ),
  };
}

function schema(value: unknown, path: string, pruned: boolean, depth: number): unknown {
  if (depth > deepest) throw new Error(`${path} is nested too deep`);
  return ruled(value, path, schemaRules, pruned, depth);
}

/** A copy of an object with each member checked by its rule; members without a rule are copied unchanged. */
function ruled(value: unknown, path: string, rules: ReadonlyMap<string, Rule>, pruned: boolean, depth: number): object {
  const members = Object.entries(object(value, path)).filter(([name]) => !(pruned && name === "default"));
  return Object.fromEntries(
    members.map(([name, member]) => {
      const rule = rules.get(name);
      return [name, rule === undefined ? member : byRule(rule, member, `${path}.${name}`, pruned, depth)];
    }),
  );
}

function byRule(rule: Rule, value: unknown, path: string, pruned: boolean, depth: number): unknown {
  const below = (one: unknown, at: string): unknown => schema(one, at, pruned, depth + 1);
  switch (rule) {
    case "text":
      return primitive(value, path, "string");
    case "flag":
      return primitive(value, path, "boolean");
    case "number":
      return primitive(value, path, "number");
    case "texts":
      return array(value, path).map((one, i) => primitive(one, `${path}[${i}]`, "string"));
    case "names": {
      if (typeof value === "string") return value;
      const names = array(value, path).map((one, i) => primitive(one, `${path}[${i}]`, "string"));
      return names.length === 1 ? names[0] : names;
    }
    case "list":
      return array(value, path);
    case "schema":
      return below(value, path);
    case "schemas":
      return array(value, path).map((one, i) => below(one, `${path}[${i}]`));
    case "items":
      return Array.isArray(value) ? value.map((one, i) => below(one, `${path}[${i}]`)) : below(value, path);
    case "schemaOrFlag":
      return typeof value === "boolean" ? value : below(value, path);
    case "schemaMap":
      return Object.fromEntries(entries(value, path).map(([name, one]) => [name, below(one, `${path}.${name}`)]));
  }
}

function object(value: unknown, path: string): Record<string, unknown> {
  if (!isJsonObject(value)) throw new Error(`${path} is not an object`);
  return value;
}

function entries(value: unknown, path: string): [string, unknown][] {
  return value === undefined || value === null ? [] : Object.entries(object(value, path));
}

function array(value: unknown, path: string): unknown[] {
  if (!Array.isArray(value)) throw new Error(`${path} is not a list`);
  return value;
}

function primitive(value: unknown, path: string, type: "string" | "boolean" | "number"): unknown {
  if (typeof value !== type) throw new Error(`${path} is not a ${type}`);
  return value;
}
