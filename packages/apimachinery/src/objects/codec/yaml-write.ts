/**
 * Writes JSON values as YAML, character for character like Go: quoting style, folding of long lines and order of keys.
 * Source: gopkg.in/yaml.v2 {emitterc,encode,sorter}.go
 */
import { atOnce, type Steps, sortedInSteps } from "../../process/event-loop/steps.ts";
import { goFloat } from "../../process/metrics/go-float.ts";
import { readsAsText } from "./yaml-resolve.ts";

/** A line is folded at the first space after this column. */
const width = 80;
/** In bytes; longer keys are written as explicit keys (`? key`). */
const longestKey = 128;

/** @param value JSON; integers beyond 2^53 are bigint. @throws RangeError when nested deeper than the stack allows */
export function writeYaml(value: unknown): string {
  return atOnce(writeYamlInSteps(value));
}

/** As `writeYaml`, in steps for many values. */
export function* writeYamlInSteps(value: unknown): Steps<string> {
  const output = new Output();
  yield* writeNode(output, value, 0, false);
  output.startLine(0);
  return output.text;
}

/** Values that are written between two yields. */
const writtenPerStep = 512;

/** The written text, and the state of its last line. */
class Output {
  text = "";
  /** Values written so far. */
  values = 0;
  column = 0;
  /** The current line has only indentation and the indicators `-`, `?`, `:`. */
  isIndentation = true;
  #endsInSpace = true;

  /** Moves to the indentation; starts a new line unless the current one has only indentation up to there. */
  startLine(indent: number): void {
    if (!this.isIndentation || this.column > indent || (this.column === indent && !this.#endsInSpace)) this.break();
    if (this.column < indent) this.#append(" ".repeat(indent - this.column));
    this.isIndentation = true;
    this.#endsInSpace = true;
  }

  break(): void {
    this.text += "\n";
    this.column = 0;
    this.isIndentation = true;
    this.#endsInSpace = true;
  }

  /** Writes `-`, `?` or `:` at the start of a line; a nested collection may follow on the same line. */
  indicator(mark: string): void {
    this.#append(this.#endsInSpace ? mark : ` ${mark}`);
    this.#endsInSpace = false;
  }

  /** Writes text, separated by a space from the preceding token. */
  word(text: string): void {
    this.#append(this.#endsInSpace ? text : ` ${text}`);
    this.#close();
  }

  /** Writes text without a preceding space. */
  join(text: string): void {
    this.#append(text);
    this.#close();
  }

  #append(text: string): void {
    this.text += text;
    this.column += lengthOf(text);
  }

  #close(): void {
    this.isIndentation = false;
    this.#endsInSpace = false;
  }
}

/** @param indent indentation of a mapping or sequence that starts here */
function* writeNode(output: Output, value: unknown, indent: number, inMapping: boolean): Steps<void> {
  if (++output.values % writtenPerStep === 0) yield;
  if (Array.isArray(value)) yield* writeSequence(output, value, indent, inMapping);
  else if (typeof value === "object" && value !== null) yield* writeMapping(output, value, indent);
  else writeScalar(output, value, indent);
}

function writeScalar(output: Output, value: unknown, indent: number): void {
  if (typeof value === "string") writeText(output, value, indent, false);
  else output.word(typeof value === "number" ? numberText(value) : String(value));
}

function* writeSequence(output: Output, items: readonly unknown[], indent: number, inMapping: boolean): Steps<void> {
  if (items.length === 0) {
    output.word("[]");
    return;
  }
  // A sequence that is the value of a key is indented like the key, unless it begins in the line of an explicit `:`.
  const own = inMapping && !output.isIndentation ? indent - 2 : indent;
  for (const item of items) {
    output.startLine(own);
    output.indicator("-");
    yield* writeNode(output, item, own + 2, false);
  }
}

function* writeMapping(output: Output, object: object, indent: number): Steps<void> {
  const keys = Object.keys(object);
  if (keys.length === 0) {
    output.word("{}");
    return;
  }
  for (const key of yield* sortedInSteps(keys, compareKeys)) {
    output.startLine(indent);
    if (isSimpleKey(key)) {
      writeText(output, key, indent + 2, true);
      output.join(":");
    } else {
      output.indicator("?");
      writeText(output, key, indent + 2, false);
      output.startLine(indent);
      output.indicator(":");
    }
    yield* writeNode(output, (object as Record<string, unknown>)[key], indent + 2, true); // cast: read by its own keys
  }
}

function isSimpleKey(key: string): boolean {
  return key.length <= longestKey && Buffer.byteLength(key) <= longestKey && !/[\n\r\x85\u2028\u2029]/.test(key);
}

/** Fast path for most strings: no characters with a meaning in YAML. */
const ordinary = /^[A-Za-z/(][\w./()=;+-]*$/;
/**
 * Characters that are escaped in double quotes. Unlike in Go, these include U+2028 and U+2029: Go writes them verbatim and
 * then reads them as line breaks.
 */
const special = /[^\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]/;
const startsAsSyntax = /^(?:[#,[\]{}&*!|>'"%@`]|---|\.\.\.|[-?:](?: |$))/;
const containsSyntax = /:(?: |$)| #/;

/**
 * @param indent indentation of continuation lines
 * @param isKey not folded whatever its length
 */
function writeText(output: Output, text: string, indent: number, isKey: boolean): void {
  // The text of a whole document is not folded, unlike in Go: a line that begins with `---` would end the document.
  const lines = isKey || indent === 0 ? undefined : indent;
  switch (styleOf(text)) {
    case "word":
      output.word(text);
      break;
    case "bare":
      writeFolded(output, text, "", lines);
      break;
    case "single quotes":
      writeFolded(output, text, "'", lines);
      break;
    case "double quotes":
      writeDoubleQuoted(output, text, lines);
      break;
    case "literal":
      writeLiteral(output, text, indent);
  }
}

function styleOf(text: string): "word" | "bare" | "single quotes" | "double quotes" | "literal" {
  const isText = readsAsText(text);
  if (isText && text.length < width && ordinary.test(text)) return "word";
  if (special.test(text) || text.includes(" \n")) return "double quotes";
  if (text.includes("\n")) return text.endsWith(" ") ? "double quotes" : "literal";
  if (!isText) return "double quotes";
  const isSyntax = text.startsWith(" ") || text.endsWith(" ") || startsAsSyntax.test(text) || containsSyntax.test(text);
  return isSyntax ? "single quotes" : "bare";
}

/** Plain or single-quoted style. A long line is folded at a single space. */
function writeFolded(output: Output, text: string, quote: "" | "'", lines: number | undefined): void {
  output.word(quote);
  const words = text.split(" ");
  for (const [at, word] of words.entries()) {
    if (at > 0) {
      const isLone = words[at - 1] !== "" && word !== "";
      if (lines !== undefined && isLone && output.column > width) output.startLine(lines);
      else output.join(" ");
    }
    output.join(quote === "" ? word : word.replaceAll("'", "''"));
  }
  output.join(quote);
}

const escapes: ReadonlyMap<string, string> = new Map(
  [...'\0\x07\b\t\n\v\f\r\x1b"\\\x85\u2028\u2029'].map((char, at) => [char, `\\${'0abtnvfre"\\NLP'[at]}`]),
);

/** Double-quoted style. A long line is folded at a space; further spaces after it are kept by a leading backslash. */
function writeDoubleQuoted(output: Output, text: string, lines: number | undefined): void {
  output.word('"');
  const chars = [...text];
  let afterSpace = false;
  for (const [at, char] of chars.entries()) {
    const isSpace = char === " ";
    if (isSpace && lines !== undefined && !afterSpace && output.column > width && at > 0 && at < chars.length - 1) {
      output.startLine(lines);
      if (chars[at + 1] === " ") output.join("\\");
    } else output.join(escaped(char));
    afterSpace = isSpace;
  }
  output.join('"');
}

function escaped(char: string): string {
  const name = escapes.get(char);
  if (name !== undefined) return name;
  if (!special.test(char)) return char;
  const hex = char.codePointAt(0)!.toString(16).toUpperCase();
  if (hex.length <= 2) return `\\x${hex.padStart(2, "0")}`;
  return hex.length <= 4 ? `\\u${hex.padStart(4, "0")}` : `\\U${hex.padStart(8, "0")}`;
}

/** Literal style (`|`): indentation digit if the text starts with white space, `-` without final newline, `+` with several. */
function writeLiteral(output: Output, text: string, indent: number): void {
  let ends = 0;
  while (ends < text.length && text[text.length - 1 - ends] === "\n") ends++;
  output.word(`|${/^[ \n]/.test(text) ? "2" : ""}${ends === 0 ? "-" : ends > 1 || ends === text.length ? "+" : ""}`);
  const lines = text.split("\n");
  for (const [at, line] of lines.entries()) {
    if (at < lines.length - 1 || line !== "") output.break();
    if (line === "") continue;
    output.startLine(indent);
    output.join(line);
  }
  if (lines.at(-1) === "") output.break();
}

/** Shortest representation, as Go's strconv writes it; integers without exponent. */
function numberText(value: number): string {
  if (Number.isInteger(value) && value >= -(2 ** 63) && value < 2 ** 64) return String(BigInt(value));
  return goFloat(value);
}

/** Natural order: letters after all other characters, runs of digits by numeric value. */
function compareKeys(left: string, right: string): number {
  const a = [...left];
  const b = [...right];
  const at = a.findIndex((char, index) => char !== b[index]);
  if (at < 0 || at >= b.length) return a.length - b.length;
  const [one, other] = [a[at]!, b[at]!];
  const letters = [letter.test(one), letter.test(other)];
  if (letters[0] !== letters[1]) return letters[0] ? 1 : -1;
  const order = one.codePointAt(0)! - other.codePointAt(0)!;
  if (letters[0]) return order;
  const inNumber = (one === "0" || other === "0") && goesOnANumber(a, at);
  const [first, second] = [numberAt(a, at, inNumber), numberAt(b, at, inNumber)];
  if (first.value !== second.value) return first.value < second.value ? -1 : 1;
  return first.length - second.length || order;
}

const letter = /^\p{L}$/u;
const digit = /^\p{Nd}$/u;

/** True when a non-zero digit of the same run precedes, so that a zero at this position is significant. */
function goesOnANumber(chars: readonly string[], at: number): boolean {
  for (let i = at - 1; i >= 0 && digit.test(chars[i]!); i--) if (chars[i] !== "0") return true;
  return false;
}

function numberAt(chars: readonly string[], at: number, inNumber: boolean): { value: bigint; length: number } {
  let value = inNumber ? 1n : 0n;
  let end = at;
  for (; end < chars.length && digit.test(chars[end]!); end++)
    value = BigInt.asIntN(64, value * 10n + BigInt(chars[end]!.codePointAt(0)!) - 48n);
  return { value, length: end - at };
}

function lengthOf(text: string): number {
  let length = text.length;
  for (let i = 0; i < text.length; i++) if ((text.charCodeAt(i) & 0xfc00) === 0xdc00) length--;
  return length;
}
