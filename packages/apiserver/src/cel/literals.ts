/**
 * Values of literals. The lexer guarantees that they are well-formed, but numbers may be out of range and escapes may denote
 * invalid code points.
 * Source: cel-go v0.9 parser/parser.go, parser/unescape.go
 */
import { mostInt, mostUint, Uint } from "./values.ts";

/** @param kind NUM_INT, NUM_UINT or NUM_FLOAT @throws Error whose message is the text of the issue */
export function numberOf(kind: string, text: string): bigint | Uint | number {
  if (kind === "NUM_FLOAT") {
    const value = Number(text);
    if (!Number.isFinite(value)) throw new Error("invalid double literal");
    return value;
  }
  const isNegative = text.startsWith("-");
  const digits = isNegative ? text.slice(1) : text;
  if (kind === "NUM_UINT") {
    const value = BigInt(digits.slice(0, -1));
    if (value > mostUint) throw new Error("invalid uint literal");
    return new Uint(value);
  }
  const value = isNegative ? -BigInt(digits) : BigInt(digits);
  if (value > mostInt || value < -mostInt - 1n) throw new Error("invalid int literal");
  return value;
}

/** The value of a string literal. @param literal with quotes and prefix @throws Error for an invalid code point */
export function textOf(literal: string): string {
  return unquote(literal, false) as string; // cast: unquoting text returns text
}

/** Octal and hexadecimal escapes are bytes, everything else is encoded as UTF-8. @param literal including the `b` prefix */
export function bytesOf(literal: string): Uint8Array {
  return unquote(literal.slice(1), true) as Uint8Array; // cast: unquoting bytes returns bytes
}

const named: Readonly<Record<string, string>> = { a: "\x07", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t", v: "\v" };

function unquote(literal: string, isBytes: boolean): string | Uint8Array {
  const isRaw = /^[rR]/.test(literal);
  const quoted = (isRaw ? literal.slice(1) : literal).replace(/\r\n?/g, "\n");
  const marks = /^(?:"""|''')/.test(quoted) && quoted.length >= 6 ? 3 : 1;
  const body = quoted.slice(marks, -marks);
  const parts: (string | number)[] = [];
  // Split at escapes. A part is literal text, or the number of a code point or byte.
  for (const part of isRaw ? [body] : body.split(/(\\(?:[0-3][0-7]{2}|[xX].{2}|u.{4}|U.{8}|.))/s)) {
    if (isRaw || !part.startsWith("\\")) parts.push(part);
    else parts.push(escaped(part.slice(1), isBytes));
  }
  if (!isBytes) return parts.map((part) => (typeof part === "number" ? String.fromCodePoint(part) : part)).join("");
  return Buffer.concat(parts.map((part) => (typeof part === "number" ? Buffer.from([part]) : Buffer.from(part))));
}

function escaped(code: string, isBytes: boolean): string | number {
  const kind = code[0]!;
  const isOctal = kind >= "0" && kind <= "3";
  if (!isOctal && !"xXuU".includes(kind)) return named[kind] ?? kind;
  if (isBytes && "uU".includes(kind)) throw new Error("unable to unescape string");
  const value = isOctal ? Number.parseInt(code, 8) : Number.parseInt(code.slice(1), 16);
  if (!isBytes && (value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff))) throw new Error("invalid unicode code point");
  return value;
}
