/**
 * Validation of an applied configuration against its type.
 * Source: structured-merge-diff v4 typed/validate.go, errors.go
 */
import { atOnce, Pace, type Steps } from "../../../process/event-loop/steps.ts";
import { messageOf } from "../../errors/message.ts";
import { valuesPerStep } from "../../meta/deep-equal.ts";
import type { ApplyType, ListApplyType, MapApplyType, ScalarApplyType, StructApplyType } from "./apply-type.ts";
import { type Fields, isFields, itemElement } from "./list-items.ts";
import { displayElement } from "./path-element.ts";

/** Maximum number of reported errors. Upstream has no limit. */
const mostShown = 1000;

/** The value does not match its type; the message has one line with a path for each error. */
export class TypedValueError extends Error {
  constructor(errors: readonly string[]) {
    const lines = errors.slice(0, mostShown).map((error) => `  ${error}`);
    if (errors.length > mostShown) lines.push(`  and ${errors.length - mostShown} more`);
    super(errors.length === 1 ? errors[0] : ["errors:", ...lines].join("\n"));
  }
}

/** @throws TypedValueError with all errors */
export function validateTyped(type: ApplyType, value: unknown): void {
  atOnce(validateTypedInSteps(type, value));
}

/** As `validateTyped`, in steps for many values. */
export function* validateTypedInSteps(type: ApplyType, value: unknown): Steps<void> {
  const visit = new Visit();
  yield* visit.value(type, value);
  if (visit.errors.length > 0) throw new TypedValueError(visit.errors);
}

class Visit {
  readonly errors: string[] = [];
  /** The current path: display text, or path elements of list items, which are formatted only for errors. */
  readonly #steps: string[] = [];
  readonly #pace = new Pace(valuesPerStep);

  *value(type: ApplyType, value: unknown): Steps<void> {
    if (value === null || value === undefined || type.kind === "any") return;
    const fault = shapeFault(type, value);
    if (fault !== undefined) this.#complain(fault);
    // Cast: `shapeFault` has refused other shapes.
    else if (type.kind === "list") yield* this.#items(type, value as unknown[]);
    // Cast: `shapeFault` has refused other shapes.
    else if (type.kind !== "scalar") yield* this.#fields(type, value as Fields);
  }

  #complain(text: string): void {
    this.#add((path) => (path === "" ? text : `${path}: ${text}`));
  }

  /** @param text called only for errors that are reported */
  #add(text: (path: string) => string): void {
    this.errors.push(this.errors.length < mostShown ? text(this.#path) : "");
  }

  get #path(): string {
    return this.#steps.map((step) => (step.startsWith(".") || step.startsWith("[") ? step : displayElement(step))).join("");
  }

  *#items(list: ListApplyType, items: readonly unknown[]): Steps<void> {
    const seen = new Set<string>();
    for (const [i, item] of items.entries()) {
      let step = `[${i}]`;
      if (list.relation !== "atomic") {
        try {
          step = itemElement(list, item);
        } catch (err) {
          this.#complain(`element ${i}: ${messageOf(err)}`);
          return; // errors below cannot be reported without a path element
        }
        if (seen.has(step)) this.#complain(`duplicate entries for key ${displayElement(step)}`);
        seen.add(step);
      }
      yield* this.#below(step, list.element, item);
    }
  }

  *#fields(type: MapApplyType | StructApplyType, fields: Fields): Steps<void> {
    for (const [key, value] of Object.entries(fields)) {
      const fieldType = type.kind === "map" ? type.value : (type.fields.get(key)?.type ?? type.other);
      if (fieldType === undefined) {
        this.#add((path) => `${path}.${key}: field not declared in schema`);
        return; // only the first one of each object is reported, as upstream
      }
      yield* this.#below(`.${key}`, fieldType, value);
    }
  }

  *#below(step: string, type: ApplyType, value: unknown): Steps<void> {
    if (this.#pace.isDue()) yield;
    this.#steps.push(step);
    yield* this.value(type, value);
    this.#steps.pop();
  }
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

/** A value in its Go wrapper, printed with `%v`. */
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

/** A value printed with Go's `%#v`. */
function goSyntax(value: unknown): string {
  if (Array.isArray(value)) return `[]interface {}{${value.map(goSyntax).join(", ")}}`;
  if (isFields(value)) {
    const keys = Object.keys(value).sort();
    return `map[string]interface {}{${keys.map((key) => `${JSON.stringify(key)}:${goSyntax(value[key])}`).join(", ")}}`;
  }
  if (typeof value === "string") return JSON.stringify(value);
  return value === null || value === undefined ? "interface {}(nil)" : String(value);
}
