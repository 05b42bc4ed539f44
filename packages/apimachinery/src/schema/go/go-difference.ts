import { goQuote } from "../../meta/go-quote.ts";
import { type Comparison, compare, type Part } from "./comparison.ts";
import { ellipsis, flat, type Line, render, type Sign, type Text } from "./difference-text.ts";
import { type GoScalar, type GoValue, goValue } from "./go-value.ts";

/**
 * Difference of two objects of a type, as upstream appends it to errors of updates. `-` marks values of the update, `+`
 * stored values.
 * Source: k8s.io/apimachinery pkg/util/diff ObjectDiff, which is go-cmp's cmp.Diff
 */
export function goDifference(type: string, next: unknown, current: unknown): string {
  return render(difference(compare(goValue(type, next), goValue(type, current)), { mode: "both", types: "always", detail: 3 }));
}

/** What is printed of a comparison, where type names are printed, and up to which depth. */
interface Style {
  readonly mode: "both" | "identical" | Sign;
  /** `composite`: for structs, lists and maps, unless they are equal. */
  readonly types: "always" | "composite" | "never";
  readonly detail: number;
}

const contextLines = 2;

function difference(node: Comparison, outer: Style): Text {
  const style = { ...outer, detail: Math.max(outer.detail, outer.mode === "identical" ? 1 : 3) };
  const value = (style.mode === "+" ? node.y : (node.x ?? node.y)) as GoValue;
  if (node.depth === 0) return valueText(value, style);
  if (value.kind === "pointer") return { prefix: "&", inner: difference((node.parts[0] as Part).value, style), suffix: "" };
  const inner = style.mode === "both" ? changedParts(node, style) : allParts(node, style);
  return typed(value.kind === "scalar" ? "" : value.type, { prefix: "{", inner, suffix: "}" }, style);
}

const partStyle = (value: GoValue, style: Style): Style => ({ ...style, types: value.kind === "struct" ? "composite" : "never" });

/** All parts of one side; of structs only the fields that are not zero. */
function allParts(node: Comparison, style: Style): Line[] {
  const most = style.mode === "identical" ? 4 : 16;
  const lines: Line[] = [];
  for (const part of node.parts) {
    if (lines.length === most) return [...lines, { sign: "", key: "", text: ellipsis }];
    const { x, y } = part.value;
    const value = style.mode === "+" ? y : x;
    if (value === undefined || (node.x?.kind === "struct" && isZero(value))) continue;
    lines.push(lineOf(node, part, "", difference(part.value, partStyle(node.x as GoValue, style))));
  }
  return lines;
}

const mostDifferences = 16;

/** The parts that differ, with up to two equal neighbours as context, and a count of omitted parts. */
function changedParts(node: Comparison, outer: Style): Line[] {
  const style = partStyle(node.x as GoValue, outer);
  const lines: Line[] = [];
  const parts = [...node.parts];
  let told = 0;
  for (let first = true; parts.length > 0; first = false) {
    if (told >= mostDifferences) return [...lines, leftOut(node, parts)];
    const differs = (part: Part): boolean => part.value.different > 0;
    const end = parts.findIndex((part) => differs(part) !== differs(parts[0] as Part));
    const group = parts.splice(0, end < 0 ? parts.length : end);
    if (differs(group[0] as Part)) {
      told += group.length;
      lines.push(...group.flatMap((part) => changedPart(node, part, style)));
    } else {
      lines.push(...equalParts(node, group, { before: !first, after: parts.length > 0 }, style));
    }
  }
  return lines;
}

function equalParts(node: Comparison, group: Part[], context: { before: boolean; after: boolean }, style: Style): Line[] {
  const low = context.before ? Math.min(contextLines, group.length) : 0;
  let high = context.after ? Math.min(contextLines, group.length - low) : 0;
  if (group.length - low - high === 1) high++;
  const shown = (part: Part): Line => lineOf(node, part, "", difference(part.value, { ...style, mode: "identical", detail: 1 }));
  const hidden = group.slice(low, group.length - high);
  return [
    ...group.slice(0, low).map(shown),
    ...(hidden.length === 0 ? [] : [leftOut(node, hidden)]),
    ...group.slice(group.length - high).map(shown),
  ];
}

/** A part without branches on both sides gets one line for each side; others are expanded. */
function changedPart(node: Comparison, part: Part, style: Style): Line[] {
  const { value } = part;
  if (value.below !== value.depth) return [lineOf(node, part, "", difference(value, style))];
  const side = (sign: "-" | "+", detail: number): Text | undefined =>
    (sign === "-" ? value.x : value.y) === undefined ? undefined : difference(value, { ...style, mode: sign, detail });
  let [removed, inserted] = [side("-", 3), side("+", 3)];
  // Both sides look the same when long texts differ late: print more of them.
  for (let detail = 5; detail <= 16 && removed && inserted && flat(removed) === flat(inserted); detail += 2)
    [removed, inserted] = [side("-", detail), side("+", detail)];
  return [
    ...(removed === undefined ? [] : [lineOf(node, part, "-", removed)]),
    ...(inserted === undefined ? [] : [lineOf(node, part, "+", inserted)]),
  ];
}

function lineOf(node: Comparison, part: Part, sign: Sign, text: Text): Line {
  return { sign, key: node.x?.kind === "map" ? mapKey(node.x, part.key) : part.key, text };
}

/** ResourceName implements Stringer, which go-cmp marks with `s`. */
function mapKey(map: GoValue, key: string): string {
  return `${map.kind === "map" && map.type.endsWith("ResourceList") ? "s" : ""}${quoted(key)}`;
}

const partNames: Readonly<Record<string, readonly [string, string]>> = {
  struct: ["field", "fields"],
  list: ["element", "elements"],
  map: ["entry", "entries"],
};

function leftOut(node: Comparison, parts: readonly Part[]): Line {
  const count = (of: (value: Comparison) => boolean): number => parts.filter((part) => of(part.value)).length;
  const told = [
    [count((value) => value.different === 0), "identical"],
    [count((value) => value.different > 0 && value.y === undefined), "removed"],
    [count((value) => value.different > 0 && value.x === undefined), "inserted"],
    [count((value) => value.different > 0 && value.x !== undefined && value.y !== undefined), "modified"],
  ].flatMap(([n, word]) => (n === 0 ? [] : [`${n} ${word}`]));
  const last = told.pop() ?? "";
  const list = told.length === 0 ? last : told.length === 1 ? `${told[0]} and ${last}` : `${told.join(", ")}, and ${last}`;
  const name = partNames[node.x?.kind ?? ""]?.[parts.length > 1 ? 1 : 0];
  return { sign: "", key: "", text: ellipsis, comment: `${list} ${name}` };
}

/** A single value, up to the depth of `style.detail`. */
function valueText(value: GoValue, style: Style): Text {
  if (value.kind === "scalar") return scalarText(value, style);
  if (value.kind === "pointer") {
    if (value.to === undefined) return "nil";
    return value.type === "v1.LabelSelector"
      ? `s${quoted(selectorText(value.to))}`
      : { prefix: "&", inner: valueText(value.to, style), suffix: "" };
  }
  const inside: Style = { ...partStyle(value, style), detail: style.detail - 1 };
  const lines: Line[] = [];
  const parts =
    value.kind === "struct"
      ? value.fields.filter((field) => !isZero(field.value)).map((field) => ({ key: field.name, value: field.value }))
      : value.kind === "list"
        ? value.items?.map((item) => ({ key: "", value: item }))
        : value.entries?.map((entry) => ({ key: mapKey(value, entry.key), value: entry.value }));
  if (parts === undefined) return "nil";
  const most = ((1 << Math.max(0, style.detail)) >> 1) << 2;
  for (const { key, value: part } of parts) {
    const full = lines.length === most;
    lines.push(full ? { sign: "", key: "", text: ellipsis } : { sign: "", key, text: valueText(part, inside) });
    if (full) break;
  }
  return typed(value.type, { prefix: "{", inner: lines, suffix: "}" }, style);
}

/** Text of LabelSelector.String: `&LabelSelector{MatchLabels:map[string]string{a: b,},…,}`. */
function selectorText(selector: GoValue): string {
  const [labels, expressions] = selector.kind === "struct" ? selector.fields.map((field) => field.value) : [];
  const entries = labels?.kind === "map" ? (labels.entries ?? []) : [];
  const terms = expressions?.kind === "list" ? (expressions.items ?? []) : [];
  const bare = (value: GoValue): string =>
    value.kind === "scalar" ? value.text : value.kind === "list" ? `[${(value.items ?? []).map(bare).join(" ")}]` : "";
  const requirement = (term: GoValue): string =>
    term.kind === "struct" ? term.fields.map((field) => `${field.name}:${bare(field.value)},`).join("") : "";
  const match = entries.map((entry) => `${entry.key}: ${bare(entry.value)},`).join("");
  const list = terms.map((term) => `LabelSelectorRequirement{${requirement(term)}},`).join("");
  return `&LabelSelector{MatchLabels:map[string]string{${match}},MatchExpressions:[]LabelSelectorRequirement{${list}},}`;
}

function scalarText(value: GoScalar, style: Style): Text {
  if (!value.isString) return value.text;
  const most = (1 << Math.max(0, style.detail)) << 5;
  return value.text.length > most + ellipsis.length ? quoted(value.text.slice(0, most)) + ellipsis : quoted(value.text);
}

function typed(type: string, text: Text, style: Style): Text {
  const shown = style.types === "always" || (style.types === "composite" && style.mode !== "identical");
  return shown ? { prefix: type, inner: text, suffix: "" } : text;
}

function isZero(value: GoValue): boolean {
  switch (value.kind) {
    case "scalar":
      return value.zero;
    case "struct":
      return value.fields.every((field) => isZero(field.value));
    case "list":
      return value.items === undefined;
    case "map":
      return value.entries === undefined;
    case "pointer":
      return value.to === undefined;
  }
}

/** A quoted string, in backquotes when that avoids escapes. */
function quoted(text: string): string {
  const escaped = goQuote(text);
  const raw = escaped.length !== text.length + 2 && /^[^`\n]*$/.test(text) && !/[^\P{C}\t]/u.test(text);
  return raw ? `\`${text}\`` : escaped;
}
