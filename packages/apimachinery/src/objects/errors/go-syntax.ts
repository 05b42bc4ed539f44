import { goQuote } from "../meta/go-quote.ts";

/** A value with a predetermined text in error messages: the Go syntax of a struct, or the result of its String method. */
export class GoText {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/**
 * A value as printed by Go's `%#v`. Lists and maps of strings are printed with these types, all others as untyped JSON
 * (`map[string]interface {}`), which upstream uses for custom resources.
 */
export function goSyntax(value: unknown): string {
  if (value instanceof GoText) return value.text;
  if (value === null || value === undefined) return "interface {}(nil)";
  if (typeof value === "string") return goQuote(value);
  if (typeof value !== "object") return String(value);
  if (Array.isArray(value)) {
    const type = value.every((item) => typeof item === "string") ? "[]string" : "[]interface {}";
    return `${type}{${joined(value, goSyntax)}}`;
  }
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  entries.sort(([a], [b]) => (a < b ? -1 : 1));
  const type = entries.every(([, item]) => typeof item === "string") ? "map[string]string" : "map[string]interface {}";
  return `${type}{${joined(entries, ([key, item]) => `${goQuote(key)}:${goSyntax(item)}`)}}`;
}

/** Items of a list or map that a text shows. Upstream has no limit, but quoting a hundred thousand items takes tenths of a second. */
const mostShown = 1000;

function joined<T>(items: readonly T[], textOf: (item: T) => string): string {
  const shown = items.slice(0, mostShown).map((item) => textOf(item));
  return [...shown, ...(items.length > mostShown ? [`and ${items.length - mostShown} more`] : [])].join(", ");
}

/** Lists and maps as untyped JSON printed by `%#v`, whatever their elements are; scalars are returned unchanged. */
export function goUntyped(value: unknown): unknown {
  return typeof value === "object" && value !== null ? new GoText(untyped(value)) : value;
}

function untyped(value: unknown): string {
  if (Array.isArray(value)) return `[]interface {}{${value.map(untyped).join(", ")}}`;
  if (typeof value !== "object" || value === null) return goSyntax(value);
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `map[string]interface {}{${entries.map(([key, item]) => `${goQuote(key)}:${untyped(item)}`).join(", ")}}`;
}

/** A list of a named string type, e.g. `[]core.IPFamily{"IPv4"}`. @param values undefined for nil */
export function goStrings(type: string, values: readonly string[] | undefined): GoText {
  return new GoText(values === undefined ? `[]${type}(nil)` : `[]${type}{${joined(values, goQuote)}}`);
}
