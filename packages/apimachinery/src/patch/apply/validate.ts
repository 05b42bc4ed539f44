/**
 * Does an applied configuration, as the client wrote it, fit its type?
 * Source: structured-merge-diff v4 typed/validate.go, errors.go
 */
import type { ApplyType, ListApplyType, MapApplyType, ScalarApplyType, StructApplyType } from "./apply-type.ts";
import { type Fields, isFields, itemElement } from "./list-items.ts";
import { displayElement, fieldElement } from "./path-element.ts";

/** The value does not fit its type; the message has one line for each place, with its path. */
export class TypedValueError extends Error {
  constructor(errors: readonly string[]) {
    super(errors.length === 1 ? errors[0] : ["errors:", ...errors.map((error) => `  ${error}`)].join("\n"));
  }
}

/** @throws TypedValueError */
export function validateTyped(type: ApplyType, value: unknown): void {
  const errors: string[] = [];
  visit(type, value, "", errors);
  if (errors.length > 0) throw new TypedValueError(errors);
}

function visit(type: ApplyType, value: unknown, path: string, errors: string[]): void {
  if (value === null || value === undefined || type.kind === "any") return;
  const fault = shapeFault(type, value);
  if (fault !== undefined) errors.push(at(path, fault));
  else if (type.kind === "list") visitItems(type, value as unknown[], path, errors);
  else if (type.kind !== "scalar") visitFields(type, value as Fields, path, errors);
}

function at(path: string, text: string): string {
  return path === "" ? text : `${path}: ${text}`;
}

function shapeFault(type: ApplyType, value: unknown): string | undefined {
  switch (type.kind) {
    case "scalar":
      return scalarFault(type, value);
    case "list":
      return Array.isArray(value) ? undefined : `expected list, got ${shown(value)}`;
    default:
      return isFields(value) ? undefined : `expected map, got ${shown(value)}`;
  }
}

function visitItems(list: ListApplyType, items: readonly unknown[], path: string, errors: string[]): void {
  const seen = new Set<string>();
  for (const [i, item] of items.entries()) {
    let step = `[${i}]`;
    if (list.relation !== "atomic") {
      try {
        const element = itemElement(list, item);
        step = displayElement(element);
        if (seen.has(element)) errors.push(at(path, `duplicate entries for key ${step}`));
        seen.add(element);
      } catch (err) {
        errors.push(at(path, `element ${i}: ${(err as Error).message}`));
        return; // what is deeper has no path to be told by
      }
    }
    visit(list.element, item, path + step, errors);
  }
}

function visitFields(type: MapApplyType | StructApplyType, fields: Fields, path: string, errors: string[]): void {
  for (const [key, value] of Object.entries(fields)) {
    const fieldType = type.kind === "map" ? type.value : (type.fields.get(key)?.type ?? type.other);
    const fieldPath = path + displayElement(fieldElement(key));
    if (fieldType === undefined) {
      errors.push(`${fieldPath}: field not declared in schema`);
      return; // one for each object is told
    }
    visit(fieldType, value, fieldPath, errors);
  }
}

function scalarFault(type: ScalarApplyType, value: unknown): string | undefined {
  switch (type.scalar) {
    case "numeric":
      if (typeof value === "number" || typeof value === "bigint") return undefined;
      return `expected numeric (int or float), got ${goType(value)}`;
    case "string":
      return typeof value === "string" ? undefined : `expected string, got &value.valueUnstructured{Value:${goSyntax(value)}}`;
    case "boolean":
      return typeof value === "boolean" ? undefined : `expected boolean, got ${shown(value)}`;
    case "untyped":
      return typeof value === "object" ? `expected any scalar, got ${shown(value)}` : undefined;
  }
}

/** A value inside its Go wrapper, as `%v` prints it. */
function shown(value: unknown): string {
  return `&{${goValue(value)}}`;
}

function goValue(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(goValue).join(" ")}]`;
  if (isFields(value)) {
    const keys = Object.keys(value).sort();
    return `map[${keys.map((key) => `${key}:${goValue(value[key])}`).join(" ")}]`;
  }
  return value === null || value === undefined ? "<nil>" : String(value);
}

function goType(value: unknown): string {
  if (Array.isArray(value)) return "[]interface {}";
  if (isFields(value)) return "map[string]interface {}";
  return typeof value === "boolean" ? "bool" : typeof value;
}

/** As `%#v` prints it. */
function goSyntax(value: unknown): string {
  if (Array.isArray(value)) return `[]interface {}{${value.map(goSyntax).join(", ")}}`;
  if (isFields(value)) {
    const keys = Object.keys(value).sort();
    return `map[string]interface {}{${keys.map((key) => `${JSON.stringify(key)}:${goSyntax(value[key])}`).join(", ")}}`;
  }
  if (typeof value === "string") return JSON.stringify(value);
  return value === null || value === undefined ? "interface {}(nil)" : String(value);
}
