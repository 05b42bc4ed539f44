/**
 * The fields of an object that did not exist before, as the text of FieldsV1, straight from a walk along the schema: what
 * `compare` with an empty object, taken apart and written out, comes to, without the sets between. Most of what is
 * written is new, and most of that is alike.
 */
import { deepEqual } from "../../meta/deep-equal.ts";
import { type ApplyType, deducedType, type ListApplyType, type StructApplyType, type StructField } from "./apply-type.ts";
import { meanTheSame, present } from "./compare.ts";
import { type FieldSet, quoted } from "./field-set.ts";
import { type Fields, hasNoFields, hasNoItems, itemElement } from "./list-items.ts";
import { compareElements, fieldElement, type PathElement, sortElements } from "./path-element.ts";

/**
 * @param object decoded, whole
 * @param ignored left out with everything below
 * @param stripped left out each by itself
 * @returns `{}` when there are none; undefined for what has to be looked at more closely (errors, objects without schema)
 */
export function createdFields(type: ApplyType, object: unknown, ignored: FieldSet, stripped: FieldSet): string | undefined {
  try {
    return `{${changedBelow(type, object, { ignored, stripped })}}`;
  } catch (err) {
    if (err === lookCloser) return undefined;
    throw err;
  }
}

const lookCloser = new Error("not a plain case");

/** What is left out below a place; undefined: nothing. */
interface LeftOut {
  readonly ignored: FieldSet | undefined;
  readonly stripped: FieldSet | undefined;
}

function below(left: LeftOut | undefined, element: PathElement): LeftOut | undefined {
  if (left === undefined) return undefined;
  const ignored = left.ignored?.get(element)?.children;
  const stripped = left.stripped?.get(element)?.children;
  return ignored === undefined && stripped === undefined ? undefined : { ignored, stripped };
}

/** One field with what is inside it; `""` when neither is in the set. */
function entry(key: string, element: PathElement, inside: string, self: boolean, left: LeftOut | undefined): string {
  if (left?.ignored?.get(element)?.member) return "";
  const member = self && !left?.stripped?.get(element)?.member;
  if (inside === "") return member ? `${key}:{}` : "";
  return member ? `${key}:{".":{},${inside}}` : `${key}:{${inside}}`;
}

const joined = (before: string, next: string): string => (before === "" ? next : next === "" ? before : `${before},${next}`);

/** Below something that every object has: only what is not as in an empty one. */
function changedBelow(type: ApplyType, value: unknown, left: LeftOut | undefined): string {
  if (type.kind !== "struct") throw lookCloser;
  let text = "";
  for (const { field, key } of ordered(type)) {
    const held = present(field, (value as Fields)[field.name]);
    if (held === undefined || held === field.implied) continue;
    const { element } = field;
    const inner = below(left, element);
    if (field.implied === undefined) text = joined(text, entry(key, element, allBelow(field.type, held, inner), true, left));
    else text = joined(text, changed(field, key, held, left, inner));
  }
  return text;
}

/** A field that an empty object has too, with its zero value. */
function changed(field: StructField, key: string, held: unknown, left: LeftOut | undefined, inner: LeftOut | undefined): string {
  const { type, element, implied } = field;
  if (type.kind === "scalar") return entry(key, element, "", !meanTheSame(type, implied, held), left);
  if (type.kind === "list" && hasNoItems(held)) return "";
  if (type.kind === "map" && hasNoFields(held)) return "";
  const whole = type.kind === "list" ? type.relation === "atomic" : type.atomic;
  if (whole) return entry(key, element, "", !deepEqual(implied, held), left);
  if (type.kind === "any") throw lookCloser;
  return entry(key, element, type.kind === "struct" ? changedBelow(type, held, inner) : allBelow(type, held, inner), false, left);
}

/** Everything below something that was not there. */
function allBelow(type: ApplyType, value: unknown, left: LeftOut | undefined): string {
  if (typeof value !== "object" || value === null) return "";
  switch (type.kind) {
    case "scalar":
      return "";
    case "list":
      return type.relation === "atomic" || hasNoItems(value) ? "" : items(type, value as unknown[], left);
    case "map":
      return type.atomic ? "" : entries(type.value, value as Fields, left);
    case "any":
      return type.atomic || hasNoFields(value) ? "" : entries(deducedType, value as Fields, left);
    case "struct":
      return type.atomic ? "" : fields(type, value as Fields, left);
  }
}

function fields(type: StructApplyType, value: Fields, left: LeftOut | undefined): string {
  let text = "";
  for (const { field, key } of ordered(type)) {
    const held = present(field, value[field.name]);
    if (held === undefined) continue;
    text = joined(text, entry(key, field.element, allBelow(field.type, held, below(left, field.element)), true, left));
  }
  return text;
}

function entries(type: ApplyType, map: Fields, left: LeftOut | undefined): string {
  let text = "";
  for (const element of sortElements(Object.keys(map).map(fieldElement))) {
    const inside = type.kind === "scalar" ? "" : allBelow(type, map[element.slice(2)], below(left, element));
    text = joined(text, entry(quotedOnce(element), element, inside, true, left));
  }
  return text;
}

function items(list: ListApplyType, values: readonly unknown[], left: LeftOut | undefined): string {
  const steps = new Map<PathElement, unknown>();
  for (const value of values) {
    try {
      steps.set(itemElement(list, value), value);
    } catch {
      throw lookCloser;
    }
  }
  if (steps.size < values.length) throw lookCloser;
  let text = "";
  for (const element of sortElements([...steps.keys()])) {
    const value = steps.get(element);
    text = joined(text, entry(quotedOnce(element), element, allBelow(list.element, value, below(left, element)), true, left));
  }
  return text;
}

/** Names of keys, ports and variables come again with every object of a kind; they come from users, so few are kept. */
const quotedTexts = new Map<PathElement, string>();
const mostQuoted = 4096;

function quotedOnce(element: PathElement): string {
  let text = quotedTexts.get(element);
  if (text === undefined) {
    text = quoted(element);
    if (quotedTexts.size >= mostQuoted) quotedTexts.clear();
    quotedTexts.set(element, text);
  }
  return text;
}

interface OrderedField {
  readonly field: StructField;
  /** As a key of FieldsV1, quoted. */
  readonly key: string;
}

const orders = new WeakMap<StructApplyType, readonly OrderedField[]>();

/** The fields in the order of FieldsV1. Only of described types: names of others are their users' choice. */
function ordered(type: StructApplyType): readonly OrderedField[] {
  let order = orders.get(type);
  if (order === undefined) {
    if (!type.described) throw lookCloser;
    order = [...type.fields.values()]
      .sort((a, b) => compareElements(a.element, b.element))
      .map((field) => ({ field, key: quoted(field.element) }));
    orders.set(type, order);
  }
  return order;
}
