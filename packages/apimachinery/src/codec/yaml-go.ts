/**
 * Where Go's yaml.v2, with the step to JSON behind it, differs from the parser used here.
 * Source: gopkg.in/yaml.v2 {scannerc,decode,resolve}.go, sigs.k8s.io/yaml yaml.go
 */
import { type Document, isScalar, type ParsedNode, Scalar, type ScalarTag, type Tags, visit } from "yaml";

/** `0o17` is octal there, as in YAML 1.2. */
export const octalTag: ScalarTag = {
  identify: () => false,
  default: true,
  tag: "tag:yaml.org,2002:int",
  test: /^[-+]?0o[0-7_]+$/,
  resolve: (text) => Number(text.replaceAll("_", "")),
};

/** A float has a digit before its exponent: `.`, a key of every `managedFields`, and `e1` are texts. */
const floats: Readonly<Record<string, RegExp>> = {
  "": /^[-+]?(?:\.\d[\d_]*|\d[\d_]*\.[\d_]*)$/,
  EXP: /^[-+]?(?:\.\d[\d_]*|\d[\d_]*(?:\.[\d_]*)?)[eE][-+]?\d+$/,
};

export function withGoFloats(tag: Tags[number]): Tags[number] {
  if (typeof tag === "string" || tag.tag !== "tag:yaml.org,2002:float") return tag;
  const { format = "", test } = tag as ScalarTag;
  const isNumber = test !== undefined && !test.test(".nan");
  return isNumber ? { ...(tag as ScalarTag), test: floats[format] ?? test } : tag;
}

/** Who finds a mistake in Go: its scanner says the line where it stands, its parser the line before. */
type Finder = "scanner" | "parser";

/** By what the messages of the parser used here begin with. */
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
/** Go says where it comes upon what must not follow, */
const foundAfter = "mapping values are not allowed in this context";
/** and where it no longer looks for what must. */
const foundBelow = "could not find expected ':'";

interface Mistake {
  readonly message: string;
  /** Where it begins and ends. */
  readonly pos: readonly [number, number];
}

/**
 * Mistakes of the parser used here as Go's error, which tells the first: in its words as far as they are known, with its
 * line unless that is the first.
 */
export function goSyntaxError(mistakes: readonly [Mistake, ...Mistake[]], text: string): string {
  const [{ message, pos }] = mistakes;
  const known = wording.find(([start]) => message.startsWith(start));
  if (known === undefined) return atLine(lineOf(text, pos[0]), message.split("\n")[0] as string);
  const [, words, by] = known;
  let line = lineOf(text, pos[0]);
  if (words === foundAfter)
    line = lineOf(text, Math.max(...mistakes.filter((one) => one.pos[0] === pos[0]).map((one) => one.pos[1])));
  else if (words === foundBelow) line++;
  // The end of the stream is a line of its own.
  if (pos[0] >= text.length && !text.endsWith("\n")) line++;
  return atLine(by === "parser" ? line - 1 : line, words, by === "parser" ? 0 : 1);
}

/** @param silent the line that is not told */
function atLine(line: number, text: string, silent = 1): string {
  return line > silent ? `line ${line}: ${text}` : text;
}

/** From 1. */
export function lineOf(text: string, offset: number): number {
  let line = 1;
  for (let at = text.indexOf("\n"); at >= 0 && at < offset; at = text.indexOf("\n", at + 1)) line++;
  return line;
}

/** What Go's reader refuses wherever it stands, also in what is JSON. Source: yaml.v2 readerc.go */
export const notReadable = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufffe\uffff]|(?!^)\ufeff/;

/** A number that JSON has not, as Go prints it. */
export function goFloat(value: number): string {
  return Number.isNaN(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
}

const unresolved = "Unresolved alias (the anchor must be set before the alias): ";

/** @param message of an error that is thrown when a document becomes a value; those of the step to JSON are not YAML's */
export function goValueError(message: string): string {
  if (message.startsWith("json: ") || message.startsWith("Unsupported map key")) return message;
  if (message.startsWith(unresolved)) return `yaml: unknown anchor '${message.slice(unresolved.length)}' referenced`;
  if (message.startsWith("Merge sources must be maps")) return "yaml: map merge requires map or sequence of maps as the value";
  return `yaml: ${message}`;
}

/**
 * Takes the line end from a block scalar that the text ends in without one, which Go does not add.
 * @throws Error for keys that JSON has not
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
      const isLast = (scalar as Scalar & ParsedNode).range?.[1] === text.length;
      if (isLast && typeof scalar.value === "string" && scalar.value.endsWith("\n")) scalar.value = scalar.value.slice(0, -1);
    },
  });
}
