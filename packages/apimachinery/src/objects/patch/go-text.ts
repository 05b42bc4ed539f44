/** JSON values as Go's fmt prints them and reflect names their types, for error texts. */
import { goFloat } from "../../process/metrics/go-float.ts";

type Kind = "nil" | "bool" | "int64" | "float64" | "string" | "slice" | "map";

/** reflect.Kind of the value as Go's JSON decoder represents it. */
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

/** Type name as printed by `%s` with a reflect.Type, e.g. `[]interface {}`. */
export function goTypeName(value: unknown): string {
  const kind = goKind(value);
  return typeNames[kind] ?? kind;
}

/** As printed by `%v`, e.g. `map[image:nginx ports:[80]]`. */
export function goText(value: unknown): string {
  return textOf(value, plain);
}

/** As printed by `%s`; values other than strings look like `%!s(int64=1)`. */
export function goStringText(value: unknown): string {
  if (value === null || value === undefined) return "%!s(<nil>)";
  return textOf(value, (kind, text) => (kind === "string" || kind === "nil" ? text : `%!s(${kind}=${text})`));
}

function plain(_kind: Kind, text: string): string {
  return text;
}

/** Recursive; safe because the nesting of request bodies is limited. */
function textOf(value: unknown, scalar: (kind: Kind, text: string) => string): string {
  if (value === null || value === undefined) return scalar("nil", "<nil>");
  if (Array.isArray(value)) return `[${value.map((item) => textOf(item, scalar)).join(" ")}]`;
  if (typeof value === "object") {
    const fields = Object.keys(value).sort();
    // Cast: what is neither scalar nor list is an object.
    return `map[${fields.map((key) => `${key}:${textOf((value as Record<string, unknown>)[key], scalar)}`).join(" ")}]`;
  }
  return scalar(goKind(value), typeof value === "number" ? numberText(value) : String(value));
}

function numberText(value: number): string {
  return Number.isInteger(value) ? BigInt(value).toString() : goFloat(value);
}
