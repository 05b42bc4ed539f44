/**
 * Adaptations of the `yaml` package to the behaviour of Go's yaml.v2 and the conversion to JSON in sigs.k8s.io/yaml.
 * Source: gopkg.in/yaml.v2 {scannerc,decode,resolve}.go, sigs.k8s.io/yaml yaml.go
 */
import { type Document, isScalar, type ParsedNode, Scalar, type ScalarTag, type Tags, visit } from "yaml";

/** yaml.v2 also reads `0o17` as octal, as in YAML 1.2. */
export const octalTag: ScalarTag = {
  identify: () => false,
  default: true,
  tag: "tag:yaml.org,2002:int",
  test: /^[-+]?0o[0-7_]+$/,
  resolve: (text) => Number(text.replaceAll("_", "")),
};

/** A float needs a digit before its exponent: `.`, a key in every `managedFields`, and `e1` are strings. */
const floats: Readonly<Record<string, RegExp>> = {
  "": /^[-+]?(?:\.\d[\d_]*|\d[\d_]*\.[\d_]*)$/,
  EXP: /^[-+]?(?:\.\d[\d_]*|\d[\d_]*(?:\.[\d_]*)?)[eE][-+]?\d+$/,
};

/** Replaces the test of a float tag by that of yaml.v2; returns other tags unchanged. */
export function withGoFloats(tag: Tags[number]): Tags[number] {
  if (typeof tag === "string" || tag.tag !== "tag:yaml.org,2002:float") return tag;
  const { format = "", test } = tag as ScalarTag; // cast: the resolved tags are those of scalars
  const isNumber = test !== undefined && !test.test(".nan");
  // Cast: the resolved tags are those of scalars.
  return isNumber ? { ...(tag as ScalarTag), test: floats[format] ?? test } : tag;
}

/** Where yaml.v2 detects an error: the scanner reports the line of the error, the parser the line before. */
type Finder = "scanner" | "parser";

/** Start of the `yaml` package's message → text of yaml.v2. */
const wording: readonly (readonly [start: string, text: string, by: Finder])[] = [
  ["Nested mappings are not allowed", "mapping values are not allowed in this context", "scanner"],
  ["Implicit keys need to be on a single line", "mapping values are not allowed in this context", "scanner"],
  ["Plain value cannot start with", "found character that cannot start any token", "scanner"],
  ["Tabs are not allowed as indentation", "found character that cannot start any token", "scanner"],
  ["Invalid escape sequence", "found unknown escape character", "scanner"],
  ["Unknown directive", "found unknown directive name", "scanner"],
  ["Unexpected block-seq-ind on same line", "block sequence entries are not allowed in this context", "scanner"],
  ["Implicit map keys need to be followed", "could not find expected ':'", "scanner"],
  ["Missing closing", "found unexpected end of stream", "scanner"],
  ["All mapping items must start at the same column", "did not find expected key", "parser"],
  ["All sequence items must start at the same column", "did not find expected '-' indicator", "parser"],
  ["Unexpected scalar at node end", "did not find expected key", "parser"],
  ["Unexpected flow-", "did not find expected node content", "parser"],
  ["Flow sequence ", "did not find expected ',' or ']'", "parser"],
  ["Flow map ", "did not find expected ',' or '}'", "parser"],
];
/** Reported by yaml.v2 with the line of the unexpected token, which is the end of the error's range. */
const foundAfter = "mapping values are not allowed in this context";
/** Reported by yaml.v2 with the line after the key, where it gives up. */
const foundBelow = "could not find expected ':'";

interface Mistake {
  readonly message: string;
  /** Start and end offsets. */
  readonly pos: readonly [number, number];
}

/**
 * Converts errors of the `yaml` package to the text of yaml.v2, which reports only the first one. Unknown messages keep
 * their text. The line number is omitted for the first line.
 */
export function goSyntaxError(mistakes: readonly [Mistake, ...Mistake[]], text: string): string {
  const [{ message, pos }] = mistakes;
  const known = wording.find(([start]) => message.startsWith(start));
  if (known === undefined) return atLine(lineOf(text, pos[0]), message.split("\n")[0]!);
  const [, words, by] = known;
  let line = lineOf(text, pos[0]);
  if (words === foundAfter)
    line = lineOf(text, Math.max(...mistakes.filter((one) => one.pos[0] === pos[0]).map((one) => one.pos[1])));
  else if (words === foundBelow) line++;
  // yaml.v2 counts the end of the stream as a separate line.
  if (pos[0] >= text.length && !text.endsWith("\n")) line++;
  return atLine(by === "parser" ? line - 1 : line, words, by === "parser" ? 0 : 1);
}

/** @param silent lines up to this number are not mentioned */
function atLine(line: number, text: string, silent = 1): string {
  return line > silent ? `line ${line}: ${text}` : text;
}

/** Line number of an offset, starting at 1. */
export function lineOf(text: string, offset: number): number {
  let line = 1;
  for (let at = text.indexOf("\n"); at >= 0 && at < offset; at = text.indexOf("\n", at + 1)) line++;
  return line;
}

/** Characters that Go's reader rejects anywhere, in JSON input too. Source: yaml.v2 readerc.go */
export const notReadable = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufffe\uffff]|(?!^)\ufeff/;

/** NaN and infinities as Go prints them. */
export function goFloat(value: number): string {
  return Number.isNaN(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
}

const unresolved = "Unresolved alias (the anchor must be set before the alias): ";

/** Go's text for an error from converting a document to a value. Errors of the JSON conversion have no `yaml: ` prefix. */
export function goValueError(message: string): string {
  if (message.startsWith("json: ") || message.startsWith("Unsupported map key")) return message;
  if (message.startsWith(unresolved)) return `yaml: unknown anchor '${message.slice(unresolved.length)}' referenced`;
  if (message.startsWith("Merge sources must be maps")) return "yaml: map merge requires map or sequence of maps as the value";
  return `yaml: ${message}`;
}

/**
 * Adapts a document to yaml.v2: a block scalar at the end of a text without final newline gets no newline.
 * @throws Error for map keys that JSON does not support
 */
export function asGoReads(document: Document.Parsed, text: string): void {
  const endsInLine = text.endsWith("\n");
  visit(document, {
    Pair(_, { key }) {
      if (!isScalar(key)) throw new Error("invalid map key");
      if (key.value === null) throw new Error("Unsupported map key of type: %!s(<nil>), key: <nil>");
    },
    Scalar(_, scalar) {
      if (endsInLine || (scalar.type !== Scalar.BLOCK_LITERAL && scalar.type !== Scalar.BLOCK_FOLDED)) return;
      const isLast = (scalar as Scalar & ParsedNode).range?.[1] === text.length; // cast: the parser sets `range`
      if (isLast && typeof scalar.value === "string" && scalar.value.endsWith("\n")) scalar.value = scalar.value.slice(0, -1);
    },
  });
}
