/**
 * A path element in the text form of FieldsV1 keys: `f:replicas` is a field, `k:{"name":"web"}` the item of an associative
 * list with this key, `v:"x"` the item of a set, `i:3` a list index. Texts from this module are canonical (keys sorted by
 * name, JSON as Go writes it), so that elements are equal when their texts are.
 * Source: structured-merge-diff v4 fieldpath/element.go, serialize-pe.go
 */
import { type Steps, sortedInSteps } from "../../../process/event-loop/steps.ts";
import { valuesPerStep } from "../../meta/deep-equal.ts";
import { goQuote } from "../../meta/go-quote.ts";
import { isJsonObject } from "../../meta/json-value.ts";

export type PathElement = string;
export type Path = readonly PathElement[];

/** A key field of an item and its value. */
export type KeyField = readonly [name: string, value: unknown];

/** The element of a struct field or map entry. */
export function fieldElement(name: string): PathElement {
  return `f:${name}`;
}

/** @param fields sorted by name */
export function keyElement(fields: readonly KeyField[]): PathElement {
  let text = "";
  for (const [name, value] of fields) text += `${text === "" ? "k:{" : ","}${JSON.stringify(name)}:${jsonText(value)}`;
  return `${text === "" ? "k:{" : text}}`;
}

/** The element of a set item. */
export function valueElement(value: unknown): PathElement {
  return `v:${jsonText(value)}`;
}

/**
 * Canonicalizes a FieldsV1 key from a client or from storage.
 * @returns undefined for an unknown kind of element, which callers skip
 * @throws Error for a malformed key
 */
export function readElement(text: string): PathElement | undefined {
  if ((text.charCodeAt(0) === charF && text.charCodeAt(1) === charColon) || plainItem.test(text)) return text;
  const known = elements.get(text);
  if (known !== undefined) return known.text;
  if (text.length < 2) throw new Error("key must be 2 characters long:");
  if (text[1] !== ":") throw new Error(`missing colon: ${text}`);
  if (text[0] !== "k" && text[0] !== "v" && text[0] !== "i") return undefined;
  return parsed(text).text;
}

/** FieldsV1 order: fields by name, then keys, values and indexes by their value. */
export function compareElements(a: PathElement, b: PathElement): number {
  if (a === b) return 0;
  if (a.charCodeAt(0) === charF && b.charCodeAt(0) === charF) return compareText(a, b);
  return compareParsed(parsed(a), parsed(b));
}

/** Sorts elements by `compareElements`, in place. */
export function sortElements(steps: PathElement[]): PathElement[] {
  if (steps.every((step) => sortsAsText.test(step))) return steps.sort();
  // Parse each element only once: there may be more of them than the cache holds.
  const all = steps.map((step) => ({ step, held: parsed(step) })).sort((a, b) => compareParsed(a.held, b.held));
  for (const [i, { step }] of all.entries()) steps[i] = step;
  return steps;
}

/** As `sortElements`, in steps for many elements. */
export function* sortedElementsInSteps(steps: PathElement[]): Steps<PathElement[]> {
  if (steps.length <= valuesPerStep) return sortElements(steps);
  const all: { step: PathElement; held: Parsed }[] = [];
  for (const step of steps) {
    all.push({ step, held: parsed(step) });
    if (all.length % valuesPerStep === 0) yield;
  }
  const sorted = yield* sortedInSteps(all, (a, b) => compareParsed(a.held, b.held));
  return sorted.map(({ step }) => step);
}

function compareParsed(a: Parsed, b: Parsed): number {
  const kind = a.text[0]!;
  if (kind !== b.text[0]) return ranks.indexOf(kind) - ranks.indexOf(b.text[0]!);
  if (kind === "f") return compareText(a.text, b.text);
  return a.keys === undefined || b.keys === undefined ? compareJson(a.value, b.value) : compareKeys(a.keys, b.keys);
}

/** The form in messages: `.spec`, `[name="web"]`, `[="x"]`, `[3]`. */
export function displayElement(element: PathElement): string {
  if (element.startsWith("f:")) return `.${element.slice(2)}`;
  const { keys, value } = parsed(element);
  if (keys !== undefined) return `[${keys.map(([name, held]) => `${name}=${displayJson(held)}`).join(",")}]`;
  return element.startsWith("v:") ? `[=${displayJson(value)}]` : `[${String(value)}]`;
}

/** The form in messages: `.spec.containers[name="web"].image`; empty for the object itself. */
export function displayPath(path: Path): string {
  return path.map(displayElement).join("");
}

interface Parsed {
  readonly text: PathElement;
  /** Keys of a `k:` element, sorted by name. */
  readonly keys?: readonly KeyField[];
  /** Value of a `v:` or `i:` element. */
  readonly value?: unknown;
}

const charF = 0x66;
const charColon = 0x3a;
/** Characters that JSON does not escape in a string. */
const unescaped = '[^\\0-\\x1f"\\\\<>&\\u2028\\u2029\\ud800-\\udfff]*';
/** Elements identified by a single string without escapes. */
const plainItem = new RegExp(`^(?:v:"${unescaped}"|k:\\{"${unescaped}":"${unescaped}"\\})$`);
/** Elements whose order is that of their texts. Excludes space and `!`, which sort before the closing quote. */
const sortsAsText = new RegExp(`^(?:f:[^\\ud800-\\udfff]*|(?=[^ !]*$)(?:${plainItem.source.slice(1, -1)}))$`);
/** Kinds of elements in sort order. */
const ranks = "fkvi";

/** Cache of parsed elements: few keys (container names, ports) occur repeatedly. Bounded, as they come from users. */
const elements = new Map<string, Parsed>();
const maxElements = 8192;

function parsed(text: string): Parsed {
  if (text.charCodeAt(0) === charF) return { text };
  let element = elements.get(text);
  if (element === undefined) {
    element = parse(text);
    if (elements.size >= maxElements) elements.clear();
    elements.set(text, element);
  }
  return element;
}

function parse(text: string): Parsed {
  const rest = text.slice(2);
  if (text.startsWith("i:")) {
    if (!/^[+-]?\d{1,15}$/.test(rest)) throw new Error(`strconv.Atoi: parsing ${goQuote(rest)}: invalid syntax`);
    const value = Number(rest);
    return { text: `i:${value}`, value };
  }
  if (text.startsWith("v:") && plainItem.test(text)) return { text, value: text.slice(3, -1) };
  const value: unknown = JSON.parse(rest);
  if (text.startsWith("v:")) return { text: valueElement(value), value };
  if (!isJsonObject(value)) throw new Error(`expected an object: ${text}`);
  const keys = Object.entries(value).sort(([a], [b]) => compareText(a, b));
  return { text: keyElement(keys), keys };
}

function compareKeys(a: readonly KeyField[], b: readonly KeyField[]): number {
  for (let i = 0; i < a.length && i < b.length; i++) {
    const [nameA, valueA] = a[i]!;
    const [nameB, valueB] = b[i]!;
    const order = compareText(nameA, nameB) || compareJson(valueA, valueB);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

/** Order: numbers, strings, booleans, lists, maps, null. Source: structured-merge-diff v4 value/value.go, Compare */
function compareJson(a: unknown, b: unknown): number {
  const rank = jsonRank(a);
  if (rank !== jsonRank(b)) return rank - jsonRank(b);
  if (typeof a === "string" && typeof b === "string") return compareText(a, b);
  if (Array.isArray(a) && Array.isArray(b)) {
    for (let i = 0; i < a.length && i < b.length; i++) {
      const order = compareJson(a[i], b[i]);
      if (order !== 0) return order;
    }
    return a.length - b.length;
  }
  if (isJsonObject(a) && isJsonObject(b)) return compareKeys(sortedEntries(a), sortedEntries(b));
  const [x, y] = [a, b] as [number, number]; // cast: of one rank, and none of the above: two numbers, bigints, booleans or nulls
  return x < y ? -1 : x > y ? 1 : 0;
}

function sortedEntries(map: object): KeyField[] {
  return Object.entries(map).sort(([a], [b]) => compareText(a, b));
}

function jsonRank(value: unknown): number {
  switch (typeof value) {
    case "number":
    case "bigint":
      return 0;
    case "string":
      return 1;
    case "boolean":
      return 2;
    default:
      return value === null ? 5 : Array.isArray(value) ? 3 : 4;
  }
}

/** Order of UTF-8 bytes, i.e. by code point: surrogate pairs come after all other code units. */
function compareText(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const left = a.charCodeAt(i);
    const right = b.charCodeAt(i);
    if (left === right) continue;
    if (isSurrogate(left) !== isSurrogate(right)) return isSurrogate(left) ? 1 : -1;
    return left - right;
  }
  return a.length - b.length;
}

function isSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdfff;
}

const plainText = new RegExp(`^${unescaped}$`);
const needsEscape = /[<>&\u2028\u2029]/g;

/** JSON of a value inside an element: `<`, `>` and `&` escaped, keys of maps sorted. */
function jsonText(value: unknown): string {
  if (typeof value === "bigint") return value.toString();
  if (typeof value === "string" && plainText.test(value)) return `"${value}"`;
  const sorted = isJsonObject(value) ? Object.fromEntries(sortedEntries(value)) : value;
  const text = JSON.stringify(sorted, (_key, held: unknown) => (typeof held === "bigint" ? Number(held) : held)) ?? "null";
  return text.replace(needsEscape, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function displayJson(value: unknown): string {
  if (typeof value === "string") return goQuote(value);
  if (Array.isArray(value)) return `[${value.map(displayJson).join(",")}]`;
  if (typeof value === "object" && value !== null)
    return `{${sortedEntries(value)
      .map(([name, held]) => `${name}=${displayJson(held)}`)
      .join(";")}}`;
  return String(value);
}
