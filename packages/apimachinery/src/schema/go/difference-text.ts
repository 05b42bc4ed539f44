/**
 * Layout of a difference of two Go values: a tree of texts whose short parts are written on one line. Removed and inserted
 * parts have separate lines, values after keys are aligned, and omitted parts are counted in a comment.
 * Source: github.com/google/go-cmp cmp.Diff, whose output format is deliberately unstable
 */
export type Text = string | Wrapped | TextList;
/** `core.Container{` … `}` */
export interface Wrapped {
  readonly prefix: string;
  readonly inner: Text;
  readonly suffix: string;
}
export type TextList = readonly Line[];
export type Sign = "" | "-" | "+";
export interface Line {
  readonly sign: Sign;
  readonly key: string;
  readonly text: Text;
  /** Describes what an ellipsis omits. */
  readonly comment?: string;
}

export const ellipsis = "...";
const isList = (text: Text): text is TextList => Array.isArray(text);

/** The complete multi-line text. */
export function render(text: Text): string {
  return `${indent(0, "")}${expanded(collapsed(text, "").text, "", 0)}\n`;
}

/** The text on a single line; also used to compare texts. */
export function flat(text: Text): string {
  if (typeof text === "string") return text;
  if (!isList(text)) return text.prefix + flat(text.inner) + text.suffix;
  return text.map((line) => (line.key === "" ? "" : `${line.key}: `) + flat(line.text)).join(", ");
}

const longestLine = 80;

/** Replaces every part of the tree that fits on one line by that line. */
function collapsed(text: Text, sign: Sign): { text: Text; line: string } {
  if (typeof text === "string") return { text, line: text };
  if (!isList(text)) {
    const inner = collapsed(text.inner, sign);
    const line = text.prefix + inner.line + text.suffix;
    return { text: typeof inner.text === "string" ? line : { ...text, inner: inner.text }, line };
  }
  const parts = text.map((line) => ({ line, short: collapsed(line.text, line.sign || sign) }));
  const line = parts.map(({ line: { key }, short }) => (key === "" ? "" : `${key}: `) + short.line).join(", ");
  const tall =
    parts.some(({ line, short }) => line.sign !== "" || line.comment !== undefined || typeof short.text !== "string") ||
    (sign !== "" && line.length > longestLine);
  return { text: tall ? parts.map((part) => ({ ...part.line, text: part.short.text })) : line, line };
}

function indent(level: number, sign: Sign): string {
  return `${sign === "" ? " " : sign} ${"\t".repeat(level)}`;
}

function expanded(text: Text, sign: Sign, level: number): string {
  if (typeof text === "string") return text;
  if (!isList(text)) return text.prefix + expanded(text.inner, sign, level) + text.suffix;
  const end = `\n${indent(level, sign)}`;
  if (text.length > 0 && text.every((line) => line.sign === "" && line.key === "" && line.comment === undefined && isLine(line)))
    return (
      batched(text.map((line) => line.text as string))
        .map((line) => `\n${indent(level + 1, sign)}${line}`)
        .join("") + end
    );
  const afterKey = paddings(text, (line) => (line.key !== "" && isLine(line) ? line.key.length : undefined));
  const afterText = paddings(text, (line) =>
    isLine(line) && line.text !== ellipsis && line.comment !== undefined ? (line.text as string).length : undefined,
  );
  const lines = text.map((line, i) => {
    const key = line.key === "" ? "" : `${line.key}: `;
    const body = expanded(line.text, line.sign || sign, level + 1);
    const comma = line.text === ellipsis ? "" : ",";
    const comment = line.comment === undefined ? "" : ` // ${line.comment}`;
    return `\n${indent(level + 1, line.sign || sign)}${key}${afterKey[i]}${body}${comma}${afterText[i]}${comment}`;
  });
  return lines.join("") + end;
}

const isLine = (line: Line): boolean => typeof line.text === "string";

/** Joins short values to lines. */
function batched(values: readonly string[]): string[] {
  const lines: string[] = [];
  let line = "";
  for (const value of values) {
    if (line !== "" && line.length + value.length + 2 > longestLine) {
      lines.push(line.trimEnd());
      line = "";
    }
    line += `${value}, `;
  }
  return [...lines, line.trimEnd()];
}

/** Padding that aligns consecutive lines. @param lengthOf undefined for a line that ends a run */
function paddings(lines: TextList, lengthOf: (line: Line) => number | undefined): string[] {
  const lengths = lines.map(lengthOf);
  const paddings = lines.map(() => "");
  for (let start = 0; start < lines.length; start++) {
    let end = start;
    while (end < lines.length && lengths[end] !== undefined) end++;
    const longest = Math.max(0, ...(lengths.slice(start, end) as number[]));
    for (let i = start; i < end; i++) paddings[i] = " ".repeat(longest - (lengths[i] as number));
    start = end;
  }
  return paddings;
}
