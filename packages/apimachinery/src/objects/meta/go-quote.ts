/**
 * A string in double quotes as printed by Go's `%q`, for error texts that have to match upstream.
 * Source: Go strconv.Quote
 */
export function goQuote(text: string): string {
  if (plain.test(text)) return `"${text}"`;
  let out = '"';
  for (const char of text) out += escapeRune(char);
  return `${out}"`;
}

/** As `goQuote`, for a name from bytes: lone surrogates U+DC80 to U+DCFF, which stand for invalid UTF-8, become `\xff`. */
export function goQuoteName(name: string): string {
  const parts = name.split(/([\udc80-\udcff])(?<![\ud800-\udbff].)/);
  return parts.length === 1 ? goQuote(name) : `"${parts.map(partOf).join("")}"`;
}

function partOf(part: string, i: number): string {
  return i % 2 === 0 ? goQuote(part).slice(1, -1) : `\\x${(part.charCodeAt(0) - 0xdc00).toString(16)}`;
}

const plain = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;
const printable = /^[\p{L}\p{M}\p{N}\p{P}\p{S}]$/u;

const named: Readonly<Record<string, string>> = {
  "\x07": "\\a",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\v": "\\v",
  "\\": "\\\\",
  '"': '\\"',
};

function escapeRune(char: string): string {
  const known = named[char];
  if (known !== undefined) return known;
  if (char === " " || printable.test(char)) return char;
  const code = char.codePointAt(0)!;
  if (code >= 0xd800 && code <= 0xdfff) return "\ufffd";
  if (code < 0x80) return `\\x${code.toString(16).padStart(2, "0")}`;
  return code < 0x10000 ? `\\u${code.toString(16).padStart(4, "0")}` : `\\U${code.toString(16).padStart(8, "0")}`;
}
