import { goQuote } from "../meta/go-quote.ts";
import { Quantity } from "../meta/quantity.ts";
import { GoText, goSyntax } from "./go-syntax.ts";
import { joinedFailures } from "./joined-failures.ts";
import { messageOf } from "./message.ts";

type FieldErrorType =
  | "FieldValueRequired"
  | "FieldValueInvalid"
  | "FieldValueForbidden"
  | "FieldValueNotSupported"
  | "FieldValueDuplicate"
  | "FieldValueNotFound"
  | "FieldValueTooLong"
  | "FieldValueTooMany"
  | "FieldValueTypeInvalid"
  | "InternalError";

/**
 * A validation error of one field. Validation functions return lists of them.
 * Source: k8s.io/apimachinery pkg/util/validation/field/errors.go
 */
export interface FieldError {
  type: FieldErrorType;
  /** Path as built by `child`, `index` and `mapKey`. */
  field: string;
  badValue?: unknown;
  detail: string;
}

const titles: Readonly<Record<FieldErrorType, string>> = {
  FieldValueRequired: "Required value",
  FieldValueInvalid: "Invalid value",
  FieldValueForbidden: "Forbidden",
  FieldValueNotSupported: "Unsupported value",
  FieldValueDuplicate: "Duplicate value",
  FieldValueNotFound: "Not found",
  FieldValueTooLong: "Too long",
  FieldValueTooMany: "Too many",
  FieldValueTypeInvalid: "Invalid value",
  InternalError: "Internal error",
};

/** `spec.x: Required value: detail` */
export function required(path: string, detail = ""): FieldError {
  return { type: "FieldValueRequired", field: path, detail };
}

/** `spec.x: Invalid value: "v": detail` @param value shown as Go formats it */
export function invalidValue(path: string, value: unknown, detail: string): FieldError {
  return { type: "FieldValueInvalid", field: path, badValue: value, detail };
}

/** `spec.x: Forbidden: detail` */
export function forbiddenField(path: string, detail: string): FieldError {
  return { type: "FieldValueForbidden", field: path, detail };
}

/** @param validValues shown in this order; upstream mostly sorts them */
export function notSupported(path: string, value: unknown, validValues: readonly string[]): FieldError {
  const detail = validValues.length === 0 ? "" : `supported values: ${validValues.map(goQuote).join(", ")}`;
  return { type: "FieldValueNotSupported", field: path, badValue: value, detail };
}

/** `spec.x: Duplicate value: "v"` */
export function duplicate(path: string, value: unknown): FieldError {
  return { type: "FieldValueDuplicate", field: path, badValue: value, detail: "" };
}

/** `spec.x: Not found: "v"`: the value names an object that does not exist. */
export function fieldNotFound(path: string, value: unknown): FieldError {
  return { type: "FieldValueNotFound", field: path, badValue: value, detail: "" };
}

/** @param value not shown in the text @param maxLength in bytes */
export function tooLong(path: string, value: unknown, maxLength: number): FieldError {
  return { type: "FieldValueTooLong", field: path, badValue: value, detail: `must have at most ${maxLength} bytes` };
}

/** @param max maximum for the text; negative for a text without number */
export function tooMany(path: string, actual: number, max: number): FieldError {
  const detail = max >= 0 ? `must have at most ${max} items` : "has too many items";
  return { type: "FieldValueTooMany", field: path, badValue: actual, detail };
}

/** `spec.x: Internal error: <message of err>`: the check itself failed. */
export function internalField(path: string, err: unknown): FieldError {
  return { type: "InternalError", field: path, detail: messageOf(err) };
}

/** `spec.x: Invalid value: "v": detail` */
export function formatFieldError(error: FieldError): string {
  return withField(error, fieldErrorBody(error));
}

function withField({ field }: FieldError, body: string): string {
  return `${field === "" ? "<nil>" : field}: ${body}`;
}

/** The error without its field, as in StatusCause messages. */
function fieldErrorBody(error: FieldError): string {
  const title = titles[error.type];
  const showsValue =
    error.type !== "FieldValueRequired" &&
    error.type !== "FieldValueForbidden" &&
    error.type !== "FieldValueTooLong" &&
    error.type !== "InternalError";
  const body = showsValue ? `${title}: ${formatBadValue(error.badValue)}` : title;
  return error.detail === "" ? body : `${body}: ${error.detail}`;
}

/** Appends any number of errors; `push(...more)` would overflow the stack with many. */
export function addErrors(errors: FieldError[], more: Iterable<FieldError>): void {
  for (const error of more) errors.push(error);
}

/**
 * Limits for the errors in a response. Upstream has no limit, but a single request can have so many errors that formatting
 * them would block the server.
 */
const mostShown = { errors: 1000, characters: 1024 * 1024 };

/** The errors within the limits, each with its text without the field. */
export function shownErrors(errors: readonly FieldError[]): { readonly error: FieldError; readonly body: string }[] {
  const shown: { error: FieldError; body: string }[] = [];
  let characters = 0;
  for (const error of errors) {
    const body = fieldErrorBody(error);
    shown.push({ error, body });
    characters += error.field.length + body.length;
    if (shown.length >= mostShown.errors || characters >= mostShown.characters) break;
  }
  return shown;
}

/** Joins errors: several are enclosed in brackets, duplicates removed; `""` for none. Source: ErrorList.ToAggregate */
export function formatFieldErrors(errors: readonly FieldError[]): string {
  const shown = shownErrors(errors);
  const texts = shown.map(({ error, body }) => withField(error, body));
  if (shown.length < errors.length) texts.push(`and ${errors.length - shown.length} more`);
  return texts.length === 0 ? "" : joinedFailures(texts);
}

function formatBadValue(value: unknown): string {
  if (value === null || value === undefined) return '"null"';
  if (typeof value === "string") return goQuote(value);
  if (value instanceof GoText) return value.text === "null" ? '"null"' : value.text;
  if (value instanceof Quantity) return value.toString();
  return typeof value === "object" ? goSyntax(value) : String(value);
}

/**
 * Field paths of errors are plain strings: `spec.containers[0].ports[1]`, `metadata.labels[app]`.
 * Source: k8s.io/apimachinery pkg/util/validation/field/path.go
 */
export function child(path: string, ...names: string[]): string {
  const below = names.join(".");
  return path === "" ? below : `${path}.${below}`;
}

/** `spec.x[0]` */
export function index(path: string, i: number): string {
  return `${path}[${i}]`;
}

/** `spec.x[key]`, without quotes. */
export function mapKey(path: string, key: string): string {
  return `${path}[${key}]`;
}
