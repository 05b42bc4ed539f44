import { rawJson } from "@coxswain/apimachinery/objects/codec/json-encode";
import { child, type FieldError, invalidValue, notSupported, required } from "@coxswain/apimachinery/objects/errors/field-error";
import { GoText } from "@coxswain/apimachinery/objects/errors/go-syntax";
import { deepEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import { isJsonObject } from "@coxswain/apimachinery/objects/meta/json-value";
import { mostMatchSteps, PatternError } from "@coxswain/apimachinery/objects/validation/pattern";
import { atOnce, type Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { CheckBudget, ChecksExceeded } from "./check-budget.ts";
import { hasFormat, isKnownFormat } from "./formats.ts";
import { patternOf } from "./patterns.ts";
import { additionalOf, itemsOf, perSchema, propertyOf, type Schema } from "./schema.ts";

/**
 * Validates a value by a schema, with the error texts of the go-openapi validator that upstream uses.
 * @param path of the value; error texts name fields relative to it: `spec.replicas in body must be …`
 * Source: k8s.io/kube-openapi pkg/validation/validate, apiextensions-apiserver pkg/apiserver/validation/validation.go
 */
export function schemaFaults(value: unknown, schema: Schema, path: string, budget = new CheckBudget()): FieldError[] {
  return atOnce(schemaFaultSteps(value, schema, path, budget));
}

/** Same as `schemaFaults`, but yields to the event loop between steps. */
export function* schemaFaultSteps(value: unknown, schema: Schema, path: string, budget = new CheckBudget()): Steps<FieldError[]> {
  let result: Result;
  try {
    result = yield* check(value, schema, "", budget);
  } catch (err) {
    if (err instanceof ChecksExceeded) return [invalidValue(path, new GoText("object"), err.message)];
    throw err;
  }
  return result.faults.slice(0, mostFaultsOfObject).map(({ name, kind, shown, text, allowed }) => {
    const at = name === "" ? path : child(path, name.replace(/^\./, ""));
    if (kind === "required") return required(at);
    if (kind === "enum") return notSupported(at, shown, allowed ?? []);
    return invalidValue(at, shown ?? "", text ?? "");
  });
}

/** Limit of errors reported for one object: each value can fail in every alternative of the schema. */
const mostFaultsOfObject = 10_000;

/** Errors, and the number of successful checks: of failed alternatives, the one with the most matches reports its errors. */
interface Result {
  readonly faults: readonly Fault[];
  readonly matches: number;
}

interface Fault {
  readonly name: string;
  readonly kind: "required" | "enum" | "invalid";
  readonly shown?: unknown;
  readonly text?: string;
  readonly allowed?: readonly string[];
}

/** Checks a group of schema keywords; returns undefined when they do not apply to the value. */
type Checker = (value: unknown, schema: Schema, name: string, budget: CheckBudget) => Result | Steps<Result> | undefined;

const isNumber = (value: unknown): value is number | bigint => typeof value === "number" || typeof value === "bigint";
const right = (matches: number): Result => ({ faults: [], matches });
const wrong = (...faults: Fault[]): Result => ({ faults, matches: 0 });

/** In upstream's order, which determines the order of errors. */
const checkers: readonly Checker[] = [
  (value, schema, name) => (schema.type || schema.format || isIntOrString(schema) ? typeCheck(value, schema, name) : undefined),
  logicCheck,
  (value, schema, name, budget) => (typeof value === "string" ? wrong(...stringFaults(value, schema, name, budget)) : undefined),
  (value, schema, name) =>
    typeof value === "string" && isKnownFormat(schema.format ?? "") ? formatCheck(value, schema, name) : undefined,
  (value, schema, name) => (isNumber(value) ? { faults: numberFaults(value, schema, name), matches: 1 } : undefined),
  (value, schema, name, budget) => (Array.isArray(value) ? listCheck(value, schema, name, budget) : undefined),
  enumCheck,
  (value, schema, name, budget) => (isJsonObject(value) ? objectCheck(value, schema, name, budget) : undefined),
];

function* check(value: unknown, schema: Schema, name: string, budget: CheckBudget): Steps<Result> {
  if (budget.endsStep()) yield;
  return plainResult(value, schema) ?? (yield* checkFully(value, schema, name, budget));
}

/** Cost of an error: formatting it, and comparing it with others at each level above. */
const unitsPerFault = 10;

function* checkFully(value: unknown, schema: Schema, name: string, budget: CheckBudget): Steps<Result> {
  if (value === null) return merged([typeCheck(value, schema, name), enumCheck(value, schema, name, budget)]);
  const results: Result[] = [];
  for (const checker of checkers) {
    const found = checker(value, schema, name, budget);
    if (found === undefined) continue;
    results.push("next" in found ? yield* found : found);
  }
  const result = merged(results, results.length + 1);
  budget.spend(result.faults.length * unitsPerFault);
  return result;
}

/** Keywords that do not restrict a scalar beyond its type. */
const plainWords: ReadonlySet<string> = new Set([
  ...["type", "title", "description", "default", "example", "externalDocs", "nullable"],
  ...["x-kubernetes-validations", "x-kubernetes-preserve-unknown-fields"],
]);

/** A pure cache. Per schema: results of valid scalars by their type, or `restricted` when the schema restricts more than the type. */
const plainResults = new WeakMap<Schema, Map<string, Result> | "restricted">();

/** Fast path for lists with a million scalars: valid ones share one cached result per type. */
function plainResult(value: unknown, schema: Schema): Result | undefined {
  if (value === null || typeof value === "object") return undefined;
  let results = plainResults.get(schema);
  if (results === undefined) {
    results = Object.keys(schema).every((word) => plainWords.has(word)) ? new Map() : "restricted";
    plainResults.set(schema, results);
  }
  if (results === "restricted") return undefined;
  const type = typeOf(value);
  const known = results.get(type);
  if (known !== undefined) return known;
  const found = atOnce(checkFully(value, schema, "", new CheckBudget()));
  if (found.faults.length > 0) return undefined;
  results.set(type, found);
  return found;
}

/** Combines results and removes errors with the same field and text. */
function merged(results: readonly Result[], more = 0): Result {
  const faulty = results.filter((result) => result.faults.length > 0);
  const matches = results.reduce((sum, result) => sum + result.matches, more);
  // Errors within one result are distinct already; not comparing them again keeps deep nesting linear.
  if (faulty.length < 2) return { faults: faulty[0]?.faults ?? [], matches };
  const faults = faulty.flatMap((result) => result.faults);
  const distinct = new Map(faults.map((fault) => [rawJson([fault.name, fault.kind, fault.text, fault.allowed]), fault]));
  return { faults: distinct.size === faults.length ? faults : [...distinct.values()], matches };
}

const invalid = (name: string, shown: unknown, text: string): Fault => ({
  name,
  kind: "invalid",
  shown,
  text: `${name} in body ${text}`,
});

function isIntOrString(schema: Schema): boolean {
  return schema["x-kubernetes-int-or-string"] === true && !schema.type;
}

/** With a format, lists and strings pass regardless of the type; errors of other values name the format instead of the type. */
function typeCheck(value: unknown, schema: Schema, name: string): Result {
  const wanted = isIntOrString(schema) ? ["integer", "string"] : schema.type ? [schema.type] : [];
  const actual = typeOf(value);
  const wrongType = (type: string, shown: string): Result =>
    wrong(invalid(name, shown, `must be of type ${type}: ${goQuote(shown)}`));
  if (value === null) return wanted.length === 0 || schema.nullable ? right(1) : wrongType(wanted.join(","), "null");
  const fits = wanted.includes(actual) || (actual === "integer" && wanted.includes("number"));
  const numeric = wanted.some((type) => type === "number" || type === "integer");
  const isListOrText = typeof value === "string" || Array.isArray(value);
  const format = nativeFormats[actual] ?? "";
  if (fits || (schema.format && (isListOrText ? !numeric : schema.format === format))) return right(1);
  return schema.format && !isListOrText ? wrongType(schema.format, format) : wrongType(wanted.join(","), actual);
}

/** Formats that upstream derives from Go's number types. */
const nativeFormats: Readonly<Record<string, string>> = { integer: "int64", number: "float64" };

function typeOf(value: unknown): string {
  if (value === null || value === undefined) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value === "bigint" ? "integer" : typeof value;
}

/** anyOf, oneOf, allOf and not. When all alternatives fail, the errors of the best match are reported. */
function logicCheck(value: unknown, schema: Schema, name: string, budget: CheckBudget): Steps<Result> | Result {
  const isRequested = schema.anyOf || schema.oneOf || schema.allOf || schema.not;
  return isRequested ? logicSteps(value, schema, name, budget) : right(1);
}

function* logicSteps(value: unknown, schema: Schema, name: string, budget: CheckBudget): Steps<Result> {
  // These errors have the path of the validated root value, not that of a field.
  const whole = (text: string): Result => wrong({ name: "", kind: "invalid", shown: "", text: `${goQuote(name)} ${text}` });
  const of = function* (parts: readonly Schema[] | undefined): Steps<Result[]> {
    const results: Result[] = [];
    for (const part of parts ?? []) results.push(yield* check(value, part, name, budget));
    return results;
  };
  const isValid = (result: Result): boolean => result.faults.length === 0;
  // Each part is checked once; otherwise the cost would be exponential in the depth of the schema.
  const [any, one, all] = [yield* of(schema.anyOf), yield* of(schema.oneOf), yield* of(schema.allOf)];
  const results: Result[] = [];
  if (any.length > 0) {
    const first = any.find(isValid);
    if (!first) results.push(whole("must validate at least one schema (anyOf)"));
    results.push(first ?? best(any));
  }
  if (one.length > 0) {
    const valid = one.filter(isValid);
    const how = valid.length === 0 ? "Found none valid" : `Found ${valid.length} valid alternatives`;
    if (valid.length !== 1) results.push(whole(`must validate one and only one schema (oneOf). ${how}`));
    if (valid.length < 2) results.push(valid[0] ?? best(one));
  }
  for (const result of all) results.push(result);
  if (!all.every(isValid)) {
    const how = all.some(isValid) ? "" : ". None validated";
    results.push(whole(`must validate all the schemas (allOf)${how}`));
  }
  if (isJsonObject(schema.not) && (yield* of([schema.not])).every(isValid))
    results.push(whole("must not validate the schema (not)"));
  return merged(results, 1);
}

function best(results: readonly Result[]): Result {
  return results.reduce((winner, result) => (result.matches > winner.matches ? result : winner));
}

/** Reports only the first error. */
function stringFaults(value: string, schema: Schema, name: string, budget: CheckBudget): Fault[] {
  const { maxLength, minLength } = schema;
  const length = isBound(maxLength) || isBound(minLength) ? [...value].length : 0;
  if (isBound(maxLength) && length > maxLength) return [invalid(name, value, `should be at most ${maxLength} chars long`)];
  if (isBound(minLength) && length < minLength) return [invalid(name, value, `should be at least ${minLength} chars long`)];
  const fault = patternFault(value, schema, budget);
  return fault === undefined ? [] : [invalid(name, value, fault)];
}

/** Pattern steps per budget unit: a step takes 5 to 40 ns, with a small program usually less than 1 ns. */
const stepsPerUnit = 100;
const fastStepsPerUnit = 1000;

/** A definition stored by an older server may have a pattern that does not compile here; this is an error of the value. */
function patternFault(value: string, schema: Schema, budget: CheckBudget): string | undefined {
  // Patterns of a schema that together exceed their share of memory are compiled again for each value.
  const pattern = patternOf(schema, (instructions) => budget.spend(instructions));
  if (pattern === undefined) return undefined;
  if (pattern instanceof PatternError) return `cannot be matched against its pattern: ${pattern.message}`;
  if (!pattern.canMatch(value)) {
    const most = Math.floor(mostMatchSteps / pattern.instructions);
    return `is too long for its pattern: it has ${value.length} characters, of which a pattern of ${pattern.instructions} instructions may match at most ${most}`;
  }
  budget.spend(pattern.steps(value.length) / (pattern.isFast(value.length) ? fastStepsPerUnit : stepsPerUnit));
  return pattern.matches(value) ? undefined : `should match '${pattern.source}'`;
}

function formatCheck(value: string, { format = "" }: Schema, name: string): Result {
  return hasFormat(format, value) ? right(0) : wrong(invalid(name, value, `must be of type ${format}: ${goQuote(value)}`));
}

/** Bounds are truncated to integers when the value is an integer, as upstream does. */
function numberFaults(value: number | bigint, schema: Schema, name: string): Fault[] {
  const own = Number(value);
  const bound = (limit: unknown): number | undefined =>
    isBound(limit) ? (Number.isInteger(own) ? Math.trunc(limit) : limit) : undefined;
  const [multiple, maximum, minimum] = [schema.multipleOf, bound(schema.maximum), bound(schema.minimum)];
  const found: Fault[] = [];
  if (isBound(multiple) && multiple < 0) {
    const text = `factor MultipleOf declared for ${name} must be positive: ${multiple}`;
    found.push({ name, kind: "invalid", shown: multiple, text });
  } else if (isBound(multiple) && multiple > 0 && !isMultiple(own, multiple))
    found.push(invalid(name, value, `should be a multiple of ${multiple}`));
  if (minimum !== undefined && (schema.exclusiveMinimum ? own <= minimum : own < minimum))
    found.push(invalid(name, value, `should be greater than ${schema.exclusiveMinimum ? "" : "or equal to "}${minimum}`));
  if (maximum !== undefined && (schema.exclusiveMaximum ? own >= maximum : own > maximum))
    found.push(invalid(name, value, `should be less than ${schema.exclusiveMaximum ? "" : "or equal to "}${maximum}`));
  return found;
}

/** Within floating-point tolerance. */
function isMultiple(value: number, of: number): boolean {
  const times = value / of;
  return Math.abs(times - Math.round(times)) <= 1e-9;
}

function* listCheck(value: readonly unknown[], schema: Schema, name: string, budget: CheckBudget): Steps<Result> {
  const items = itemsOf(schema);
  const { minItems, maxItems } = schema;
  const sizes: Fault[] = [];
  if (isBound(minItems) && value.length < minItems)
    sizes.push(invalid(name, value.length, `should have at least ${minItems} items`));
  if (isBound(maxItems) && value.length > maxItems)
    sizes.push(invalid(name, value.length, `should have at most ${maxItems} items`));
  return merged([...(items ? [yield* itemsCheck(value, items, name, budget)] : []), wrong(...sizes)], 1);
}

/** Limit of errors in one list or in the fields of one object; the remaining values are not checked. */
const mostFaults = 1000;

function* itemsCheck(list: readonly unknown[], items: Schema, name: string, budget: CheckBudget): Steps<Result> {
  const results: Result[] = [];
  let matches = 0;
  let faults = 0;
  for (const [i, item] of list.entries()) {
    // The fast path does not need the name, and formatting the name costs more than the check.
    if (budget.endsStep()) yield;
    const result = plainResult(item, items) ?? (yield* checkFully(item, items, `${name}[${i}]`, budget));
    matches += result.matches;
    if (result.faults.length === 0) continue;
    results.push({ faults: result.faults, matches: 0 });
    faults += result.faults.length;
    if (faults >= mostFaults) break;
  }
  return merged(results, matches);
}

const allowedBy = perSchema((schema) => {
  const allowed = (schema.enum ?? []).map((each) => (typeof each === "string" ? each : rawJson(each)));
  return { allowed, length: allowed.reduce((sum, text) => sum + text.length, 0) };
});

/** Cost of comparing with one allowed value. */
const unitsPerScalar = 0.05;
const unitsPerComparison = 0.5;

function enumCheck(value: unknown, schema: Schema, name: string, budget: CheckBudget): Result {
  const values = schema.enum ?? [];
  budget.spend(values.length * (typeof value === "object" ? unitsPerComparison : unitsPerScalar));
  // In upstream's comparison null is never equal to null.
  if (values.length === 0 || (value !== null && values.some((allowed) => deepEqual(allowed, value)))) return right(0);
  // The error contains the value and all allowed values, and a list may have a thousand such errors.
  const { allowed, length } = allowedBy(schema);
  budget.spend(length + (typeof value === "object" ? rawJson(value).length : 0));
  return wrong({ name, kind: "enum", shown: value, allowed });
}

function* objectCheck(
  value: Readonly<Record<string, unknown>>,
  schema: Schema,
  name: string,
  budget: CheckBudget,
): Steps<Result> {
  const { minProperties, maxProperties, additionalProperties } = schema;
  const fields = Object.keys(value);
  const count = fields.length;
  if (isBound(minProperties) && count < minProperties)
    return wrong(invalid(name, minProperties, `should have at least ${minProperties} properties`));
  if (isBound(maxProperties) && count > maxProperties)
    return wrong(invalid(name, maxProperties, `should have at most ${maxProperties} properties`));
  const below = (field: string): string => `${name}.${field}`;
  const others = fields.filter((field) => !propertyOf(schema, field));
  const additional = additionalOf(schema);
  const forbidden = additionalProperties === false ? others.slice(0, mostFaults) : [];
  const results: Result[] = forbidden.map((field) =>
    wrong({ name, kind: "invalid", shown: field, text: `${below(field)} in body is a forbidden property` }),
  );
  // Pushed one by one: spreading them as call arguments may overflow the stack.
  if (additional) for (const result of yield* fieldsCheck(value, others, additional, below, budget)) results.push(result);
  const { properties, order, required } = fieldsOf(schema);
  // Iterates over the smaller set: a list may have many small objects and a schema with many properties.
  const present =
    count < properties.length
      ? fields.filter((field) => order.has(field)).sort((a, b) => order.get(a)! - order.get(b)!)
      : properties.filter((field) => Object.hasOwn(value, field));
  for (const field of present)
    results.push(yield* check(value[field], propertyOf(schema, field)!, name === "" ? field : below(field), budget));
  budget.spend(required.length * unitsPerScalar);
  const missing = required.filter((field) => !Object.hasOwn(value, field));
  results.push({ faults: missing.map((field): Fault => ({ name: below(field), kind: "required" })), matches: 0 });
  return merged(results);
}

/** Property names with their order, and required names; computed once per schema. */
const fieldsOf = perSchema((schema) => {
  const properties = Object.keys(schema.properties ?? {});
  return {
    properties,
    order: new Map(properties.map((field, i) => [field, i])),
    required: [...new Set(schema.required ?? [])],
  };
});

function* fieldsCheck(
  value: Readonly<Record<string, unknown>>,
  fields: readonly string[],
  schema: Schema,
  nameOf: (field: string) => string,
  budget: CheckBudget,
): Steps<Result[]> {
  const results: Result[] = [];
  let faults = 0;
  for (const field of fields) {
    const result = yield* check(value[field], schema, nameOf(field), budget);
    results.push(result);
    faults += result.faults.length;
    if (faults >= mostFaults) break;
  }
  return results;
}

function isBound(bound: unknown): bound is number {
  return typeof bound === "number";
}
