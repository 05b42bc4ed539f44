import { badRequest } from "../errors/status-error.ts";

interface FieldTerm {
  readonly field: string;
  readonly op: "=" | "!=";
  readonly value: string;
}

const nothing: FieldTerm = { field: "", op: "=", value: "" };

type Fields = Readonly<Record<string, string>> | undefined | null;

/**
 * An immutable field selector, e.g. `metadata.name=a,status.phase!=Running`.
 * Source: k8s.io/apimachinery pkg/fields/selector.go
 */
export class FieldSelector {
  static readonly everything = new FieldSelector([]);

  readonly terms: readonly FieldTerm[];

  /** Required and excluded values by field, built lazily. Keeps matching fast when a selector has very many terms. */
  #byField: readonly { field: string; wanted: ReadonlySet<string>; unwanted: ReadonlySet<string> }[] | undefined;

  private constructor(terms: readonly FieldTerm[]) {
    this.terms = terms;
  }

  /** @throws BadRequest with upstream's text */
  static parse(text: string): FieldSelector {
    const terms: FieldTerm[] = [];
    for (const part of splitTerms(text).sort()) {
      const term = part === "" ? nothing : parseTerm(part, text);
      if (term.field !== "" || term.value !== "") terms.push(term); // a term without field and value matches everything
    }
    return terms.length === 0 ? FieldSelector.everything : new FieldSelector(terms);
  }

  /** A selector that requires each field to equal its value. */
  static fromSet(fields: Fields): FieldSelector {
    const terms = Object.entries(fields ?? {}).map(([field, value]): FieldTerm => ({ field, op: "=", value }));
    return terms.length === 0 ? FieldSelector.everything : new FieldSelector(terms);
  }

  get empty(): boolean {
    return this.terms.length === 0;
  }

  /** Absent fields count as `""`. */
  matches(fields: Fields): boolean {
    this.#byField ??= Map.groupBy(this.terms, ({ field }) => field)
      .entries()
      .map(([field, terms]) => ({
        field,
        wanted: new Set(terms.filter(({ op }) => op === "=").map(({ value }) => value)),
        unwanted: new Set(terms.filter(({ op }) => op !== "=").map(({ value }) => value)),
      }))
      .toArray();
    return this.#byField.every(({ field, wanted, unwanted }) => {
      const actual = (fields !== undefined && fields !== null && Object.hasOwn(fields, field) ? fields[field] : "") ?? "";
      if (unwanted.has(actual)) return false;
      return wanted.size === 0 || (wanted.size === 1 && wanted.has(actual));
    });
  }

  /** The value of the first `=` term for the field; undefined when there is none. */
  requiresExact(field: string): string | undefined {
    return this.terms.find((term) => term.field === field && term.op === "=")?.value;
  }

  /** The selector in the syntax of `fieldSelector`, with escapes. */
  toString(): string {
    return this.terms.map(({ field, op, value }) => `${field}${op}${escapeValue(value)}`).join(",");
  }
}

function escapeValue(value: string): string {
  return value.replace(/[\\,=]/g, "\\$&");
}

/** Splits at unescaped commas. */
function splitTerms(text: string): string[] {
  if (text === "") return [];
  const terms: string[] = [];
  let start = 0;
  for (let at = 0; at < text.length; at++) {
    if (text[at] === "\\") at++;
    else if (text[at] === ",") {
      terms.push(text.slice(start, at));
      start = at + 1;
    }
  }
  terms.push(text.slice(start));
  return terms;
}

function parseTerm(part: string, whole: string): FieldTerm {
  const match = /!=|==|=/.exec(part);
  if (match === null) throw badRequest(`invalid selector: '${whole}'; can't understand '${part}'`);
  const value = unescapeValue(part.slice(match.index + match[0].length));
  return { field: part.slice(0, match.index), op: match[0] === "!=" ? "!=" : "=", value };
}

function unescapeValue(text: string): string {
  let value = "";
  for (let at = 0; at < text.length; at++) {
    const char = text[at]!;
    if (char === "\\") {
      const next = text[++at];
      if (next === undefined || !"\\,=".includes(next))
        throw badRequest(`invalid field selector: invalid escape sequence: \\${next ?? ""}`);
      value += next;
    } else if (char === "," || char === "=") {
      throw badRequest(`invalid field selector: unescaped character in value: ${char.codePointAt(0)}`);
    } else value += char;
  }
  return value;
}
