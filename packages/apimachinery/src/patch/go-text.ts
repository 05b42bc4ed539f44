/** JSON values as Go's fmt prints them and as reflect names their types, for the texts of refusals. */
import { goFloat } from "../metrics/go-float.ts";

type Kind = "nil" | "bool" | "int64" | "float64" | "string" | "slice" | "map";

/** reflect's kind of what Go's JSON decoder made. */
export function goKind(value: unknown): Kind {
  switch (typeof value) {
    case "boolean":
      return "bool";
    case "bigint":
      return "int64";
    case "number":
      return Number.isInteger(value) ? "int64" : "float64";
    case "string":
      return "string";
    default:
      if (value === null || value === undefined) return "nil";
      return Array.isArray(value) ? "slice" : "map";
  }
}

const typeNames: Partial<Record<Kind, string>> = {
  nil: "%!s(<nil>)",
  slice: "[]interface {}",
  map: "map[string]interface {}",
};

/** `%s` of a value's reflect.Type: `[]interface {}`. */
export function goTypeName(value: unknown): string {
  const kind = goKind(value);
  return typeNames[kind] ?? kind;
}

/** `%v`: `map[image:nginx ports:[80]]`. */
export function goText(value: unknown): string {
  return textOf(value, plain);
}

/** `%s`, which is meant for strings and says so of all else: `%!s(int64=1)`. */
export function goStringText(value: unknown): string {
  if (value === null || value === undefined) return "%!s(<nil>)";
  return textOf(value, (kind, text) => (kind === "string" || kind === "nil" ? text : `%!s(${kind}=${text})`));
}

function plain(_kind: Kind, text: string): string {
  return text;
}

/** Nothing that is read from a request is nested so deep that this recursion fails. */
function textOf(value: unknown, scalar: (kind: Kind, text: string) => string): string {
  if (value === null || value === undefined) return scalar("nil", "<nil>");
  if (Array.isArray(value)) return `[${value.map((item) => textOf(item, scalar)).join(" ")}]`;
  if (typeof value === "object") {
    const fields = Object.keys(value).sort();
    return `map[${fields.map((key) => `${key}:${textOf((value as Record<string, unknown>)[key], scalar)}`).join(" ")}]`;
  }
  return scalar(goKind(value), typeof value === "number" ? numberText(value) : String(value));
}

function numberText(value: number): string {
  return Number.isInteger(value) ? BigInt(value).toString() : goFloat(value);
}
