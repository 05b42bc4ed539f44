/**
 * Lexer.
 * Source: cel-go v0.9 parser/gen/CEL.g4; error texts are those of the ANTLR lexer
 */
import type { Issue } from "./issues.ts";

/** The text of an operator or keyword, or the name of a token class (`IDENTIFIER`). */
export type TokenKind = string;

export interface Token {
  readonly kind: TokenKind;
  readonly text: string;
  readonly at: number;
}

/** In the order in which error texts list expected tokens. */
const operators =
  "== != in < <= >= > && || [ ] { } ( ) . , - ! ? : + * / % true false null NUM_FLOAT NUM_INT NUM_UINT STRING BYTES IDENTIFIER";
const order: ReadonlyMap<TokenKind, number> = new Map(operators.split(" ").map((kind, i) => [kind, i]));

export const endOfInput = "<EOF>";

/** Expected tokens as ANTLR prints them: `')'`, `IDENTIFIER`, `{'[', '{', NUM_INT}`. */
export function expectation(kinds: Iterable<TokenKind>): string {
  const sorted = [...kinds].sort((a, b) => (order.get(a) ?? 0) - (order.get(b) ?? 0));
  const names = sorted.map((kind) => (/^(?:[A-Z]|<)/.test(kind) ? kind : `'${kind}'`));
  return names.length === 1 ? names[0]! : `{${names.join(", ")}}`;
}

const keywords: ReadonlySet<string> = new Set(["in", "true", "false", "null"]);
const blank = /(?:[\t \r\n\f]+|\/\/[^\n]*)+/y;
const word = /[A-Za-z_][A-Za-z0-9_]*/y;
const punctuation = /==|!=|<=|>=|&&|\|\||[<>[\]{}().,\-!?:+*/%]/y;
/** The longest match wins. */
const numbers: readonly [kind: TokenKind, pattern: RegExp][] = [
  ["NUM_FLOAT", /[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?/y],
  ["NUM_UINT", /(?:0x[0-9a-fA-F]+|[0-9]+)[uU]/y],
  ["NUM_INT", /0x[0-9a-fA-F]+|[0-9]+/y],
];

/**
 * Limit of lexical errors, above the number that is shown. Each error may have scanned to the end of the text for a closing
 * quote, so lexing a text full of them would take quadratic time.
 */
const mostFaults = 200;

/** The tokens, terminated by an end-of-input token, and an issue for each part that is no token. */
export function tokenize(text: string): { readonly tokens: readonly Token[]; readonly issues: readonly Issue[] } {
  const tokens: Token[] = [];
  const issues: Issue[] = [];
  let at = 0;
  while (at < text.length) {
    const skipped = lengthOf(blank, text, at);
    if (skipped > 0) {
      at += skipped;
      continue;
    }
    const { kind, length } = longest(text, at);
    if (kind === undefined) {
      issues.push({ at, message: `Syntax error: token recognition error at: '${shown(text, at, length)}'` });
      if (issues.length === mostFaults) break;
    } else tokens.push({ kind, text: text.slice(at, at + length), at });
    at += length;
  }
  tokens.push({ kind: endOfInput, text: endOfInput, at: text.length });
  return { tokens, issues };
}

function shown(text: string, at: number, length: number): string {
  return text
    .slice(at, at + length)
    .replaceAll("\n", "\\n")
    .replaceAll("\r", "\\r")
    .replaceAll("\t", "\\t");
}

function lengthOf(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex - at : 0;
}

interface Match {
  /** undefined: no token; `length` characters are skipped. */
  readonly kind: TokenKind | undefined;
  readonly length: number;
}

function longest(text: string, at: number): Match {
  const literal = literalAt(text, at);
  if (literal.kind !== undefined) return literal;
  const name = lengthOf(word, text, at);
  if (name > 0) {
    const found = text.slice(at, at + name);
    return { kind: keywords.has(found) ? found : "IDENTIFIER", length: name };
  }
  let best: Match = { kind: undefined, length: 0 };
  for (const [kind, pattern] of numbers) {
    const length = lengthOf(pattern, text, at);
    if (length > best.length) best = { kind, length };
  }
  if (best.kind !== undefined) return best;
  const sign = lengthOf(punctuation, text, at);
  if (sign > 0) return { kind: text.slice(at, at + sign), length: sign };
  if (literal.length > 0) return literal;
  // The first half of a two-character operator is reported together with the next character, as ANTLR does.
  const isHalf = "=&|".includes(text[at]!);
  return { kind: undefined, length: characterLength(text, at) + (isHalf ? characterLength(text, at + 1) : 0) };
}

function characterLength(text: string, at: number): number {
  return (text.codePointAt(at) ?? 0) > 0xffff ? 2 : at < text.length ? 1 : 0;
}

/** A string or bytes literal; for an invalid one, kind is undefined and length is the part to report. */
function literalAt(text: string, at: number): Match {
  let quote = at;
  const isBytes = "bB".includes(text[quote] ?? " ");
  if (isBytes) quote++;
  const isRaw = "rR".includes(text[quote] ?? " ");
  if (isRaw) quote++;
  const mark = text[quote]!;
  if (mark !== '"' && mark !== "'") return { kind: undefined, length: 0 };
  const kind = isBytes ? "BYTES" : "STRING";
  const thrice = text.startsWith(mark.repeat(3), quote) ? quotedEnd(text, quote + 3, mark.repeat(3), isRaw) : undefined;
  if (thrice?.isWhole) return { kind, length: thrice.end - at };
  const once = quotedEnd(text, quote + 1, mark, isRaw);
  if (once.isWhole) return { kind, length: once.end - at };
  return { kind: undefined, length: Math.min(once.end + characterLength(text, once.end), text.length) - at };
}

const escaped = /\\(?:[abfnrtv"'\\?`]|[0-3][0-7]{2}|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})/y;
/** The longest valid prefix of an escape, to report where an invalid one stops being valid. */
const escapedBegin = /\\(?:[0-3][0-7]?|[xX][0-9a-fA-F]?|u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7})?/y;

function quotedEnd(
  text: string,
  from: number,
  mark: string,
  isRaw: boolean,
): { readonly isWhole: boolean; readonly end: number } {
  let at = from;
  while (at < text.length) {
    if (text.startsWith(mark, at)) return { isWhole: true, end: at + mark.length };
    const character = text[at]!;
    if (mark.length === 1 && (character === "\n" || character === "\r")) return { isWhole: false, end: at };
    if (character !== "\\" || isRaw) {
      at++;
      continue;
    }
    const length = lengthOf(escaped, text, at);
    if (length === 0) return { isWhole: false, end: at + lengthOf(escapedBegin, text, at) };
    at += length;
  }
  return { isWhole: false, end: text.length };
}
