/**
 * Where Go's yaml.v2, with the step to JSON behind it, differs from the parser used here.
 * Source: gopkg.in/yaml.v2 {scannerc,decode,resolve}.go, sigs.k8s.io/yaml yaml.go
 */
import { type Document, isScalar, type ParsedNode, Scalar, type ScalarTag, visit } from "yaml";

/** `0o17` is octal there, as in YAML 1.2. */
export const octalTag: ScalarTag = {
  identify: () => false,
  default: true,
  tag: "tag:yaml.org,2002:int",
  test: /^[-+]?0o[0-7_]+$/,
  resolve: (text) => Number(text.replaceAll("_", "")),
};

/** By what the parser's messages begin with. */
const wording: readonly (readonly [start: string, text: string])[] = [
  ["Nested mappings are not allowed", "mapping values are not allowed in this context"],
  ["Plain value cannot start with", "found character that cannot start any token"],
  ["All mapping items must start at the same column", "did not find expected key"],
  ["Implicit keys need to be on a single line", "could not find expected ':'"],
  ["Missing closing", "found unexpected end of stream"],
];

/** A syntax error in Go's words, as far as they are known; its line is named from the second on. */
export function goSyntaxError(message: string, line: number): string {
  const first = message.split("\n")[0] as string;
  const text = wording.find(([start]) => first.startsWith(start))?.[1] ?? first;
  return line > 1 ? `line ${line}: ${text}` : text;
}

/** A number that JSON has not, as Go prints it. */
export function goFloat(value: number): string {
  return Number.isNaN(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
}

const unresolved = "Unresolved alias (the anchor must be set before the alias): ";

/** @param message of an error that is thrown when a document becomes a value; those of the step to JSON are not YAML's */
export function goValueError(message: string): string {
  if (message.startsWith("json: ") || message.startsWith("Unsupported map key")) return message;
  return `yaml: ${message.startsWith(unresolved) ? `unknown anchor '${message.slice(unresolved.length)}' referenced` : message}`;
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
