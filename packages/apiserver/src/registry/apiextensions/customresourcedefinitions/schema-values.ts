import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import { invalidValue, notSupported, required } from "@coxswain/apimachinery/errors/field-error";
import { child } from "@coxswain/apimachinery/errors/field-path";
import { deepEqual } from "@coxswain/apimachinery/meta/deep-equal";
import { goQuote } from "@coxswain/apimachinery/meta/go-quote";
import { RE2JS } from "re2js";
import { additionalOf, isObject, itemsOf, propertyOf, type Schema } from "./schemas.ts";

/**
 * A value checked by a schema, in the words of the validator that upstream uses.
 * @param path where the value stands; within it, errors name the field alone: `spec.replicas in body must be …`
 * Source: k8s.io/kube-openapi pkg/validation/validate, apiextensions-apiserver pkg/apiserver/validation/validation.go
 */
export function schemaFaults(value: unknown, schema: Schema, path: string): FieldError[] {
  return faults(value, schema, "").map(({ name, kind, shown, text, allowed }) => {
    const at = name === "" ? path : child(path, name);
    if (kind === "required") return required(at);
    if (kind === "enum") return notSupported(at, shown, allowed ?? []);
    return invalidValue(at, shown ?? "", text ?? "");
  });
}

interface Fault {
  readonly name: string;
  readonly kind: "required" | "enum" | "invalid";
  readonly shown?: unknown;
  readonly text?: string;
  readonly allowed?: readonly string[];
}

function faults(value: unknown, schema: Schema, name: string): Fault[] {
  const wrongType = typeFault(value, schema, name);
  if (value === null) return [...wrongType, ...(schema.nullable ? [] : enumFault(value, schema, name))];
  return [
    ...wrongType,
    ...logicFaults(value, schema, name),
    ...(typeof value === "string" ? stringFaults(value, schema, name) : []),
    ...(typeof value === "number" || typeof value === "bigint" ? numberFaults(Number(value), schema, name) : []),
    ...(Array.isArray(value) ? listFaults(value, schema, name) : []),
    ...enumFault(value, schema, name),
    ...(isObject(value) ? objectFaults(value, schema, name) : []),
  ];
}

const invalid = (name: string, shown: unknown, text: string): Fault => ({
  name,
  kind: "invalid",
  shown,
  text: `${name} in body ${text}`,
});

function typeFault(value: unknown, schema: Schema, name: string): Fault[] {
  const either = schema["x-kubernetes-int-or-string"] === true && !schema.type;
  const wanted = either ? ["integer", "string"] : schema.type ? [schema.type] : [];
  const actual = typeOf(value);
  if (wanted.length === 0 || wanted.includes(actual)) return [];
  if (actual === "null" && schema.nullable) return [];
  if (actual === "integer" && wanted.includes("number")) return [];
  return [invalid(name, actual, `must be of type ${wanted.join(",")}: ${goQuote(actual)}`)];
}

function typeOf(value: unknown): string {
  if (value === null || value === undefined) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value === "bigint" ? "integer" : typeof value;
}

function logicFaults(value: unknown, schema: Schema, name: string): Fault[] {
  const passes = (part: unknown): boolean => faults(value, part as Schema, name).length === 0;
  // These are no faults of one field: they stand where the whole value stands.
  const whole = (text: string): Fault => ({ name: "", kind: "invalid", shown: "", text: `${goQuote(name)} ${text}` });
  const found: Fault[] = [];
  const { anyOf = [], oneOf = [], allOf = [] } = schema;
  if (anyOf.length > 0 && !anyOf.some(passes)) found.push(whole("must validate at least one schema (anyOf)"));
  const ones = oneOf.filter(passes).length;
  if (oneOf.length > 0 && ones !== 1) {
    const how = ones === 0 ? "Found none valid" : `Found ${ones} valid alternatives`;
    found.push(whole(`must validate one and only one schema (oneOf). ${how}`));
  }
  // Each part is looked at once, or deep schemas would take for ever.
  const parts = allOf.map((part) => faults(value, part as Schema, name));
  if (parts.some((part) => part.length > 0)) {
    const how = parts.some((part) => part.length === 0) ? "" : ". None validated";
    found.push(...parts.flat(), whole(`must validate all the schemas (allOf)${how}`));
  }
  if (isObject(schema.not) && passes(schema.not)) found.push(whole("must not validate the schema (not)"));
  return found;
}

function stringFaults(value: string, schema: Schema, name: string): Fault[] {
  const { maxLength, minLength, pattern } = schema;
  const length = [...value].length;
  const found: Fault[] = [];
  if (isBound(maxLength) && length > maxLength) found.push(invalid(name, value, `should be at most ${maxLength} chars long`));
  if (isBound(minLength) && length < minLength) found.push(invalid(name, value, `should be at least ${minLength} chars long`));
  // Compiled by the rules for structure already.
  if (pattern && !RE2JS.compile(pattern).matcher(value).find()) found.push(invalid(name, value, `should match '${pattern}'`));
  return found;
}

function numberFaults(value: number, schema: Schema, name: string): Fault[] {
  const { multipleOf, maximum, minimum } = schema;
  const found: Fault[] = [];
  if (isBound(multipleOf) && multipleOf > 0 && Math.abs(value / multipleOf - Math.round(value / multipleOf)) > 1e-9)
    found.push(invalid(name, value, `should be a multiple of ${multipleOf}`));
  if (isBound(maximum) && (schema.exclusiveMaximum ? value >= maximum : value > maximum))
    found.push(invalid(name, value, `should be less than ${schema.exclusiveMaximum ? "" : "or equal to "}${maximum}`));
  if (isBound(minimum) && (schema.exclusiveMinimum ? value <= minimum : value < minimum))
    found.push(invalid(name, value, `should be greater than ${schema.exclusiveMinimum ? "" : "or equal to "}${minimum}`));
  return found;
}

function listFaults(value: readonly unknown[], schema: Schema, name: string): Fault[] {
  const items = itemsOf(schema);
  const found = items ? value.flatMap((item, i) => faults(item, items, `${name}[${i}]`)) : [];
  const { minItems, maxItems } = schema;
  if (isBound(minItems) && value.length < minItems)
    found.push(invalid(name, value.length, `should have at least ${minItems} items`));
  if (isBound(maxItems) && value.length > maxItems)
    found.push(invalid(name, value.length, `should have at most ${maxItems} items`));
  return found;
}

function enumFault(value: unknown, schema: Schema, name: string): Fault[] {
  const values = schema.enum ?? [];
  if (values.length === 0 || values.some((allowed) => deepEqual(allowed, value))) return [];
  const allowed = values.map((each) => (typeof each === "string" ? each : JSON.stringify(each)));
  return [{ name, kind: "enum", shown: value, allowed }];
}

function objectFaults(value: Readonly<Record<string, unknown>>, schema: Schema, name: string): Fault[] {
  const found: Fault[] = [];
  const at = (field: string): string => (name === "" ? field : `${name}.${field}`);
  const count = Object.keys(value).length;
  const { minProperties, maxProperties } = schema;
  if (isBound(minProperties) && count < minProperties)
    found.push(invalid(name, count, `should have at least ${minProperties} properties`));
  if (isBound(maxProperties) && count > maxProperties)
    found.push(invalid(name, count, `should have at most ${maxProperties} properties`));
  for (const field of schema.required ?? []) {
    // What has a default of its own is filled in before anyone looks.
    const filled = Object.hasOwn(value, field) || propertyOf(schema, field)?.default !== undefined;
    if (!filled) found.push({ name: at(field), kind: "required" });
  }
  const additional = additionalOf(schema);
  for (const [field, item] of Object.entries(value)) {
    const part = propertyOf(schema, field) ?? additional;
    if (part) found.push(...faults(item, part, at(field)));
  }
  return found;
}

function isBound(bound: unknown): bound is number {
  return typeof bound === "number";
}
