/**
 * Fast path for creates: the FieldsV1 text of a new object, generated directly from the object and its schema. The result
 * is the same as comparing the object with an empty one and encoding the difference, without building field sets.
 */
import { deepEqual, valuesPerStep } from "../../meta/deep-equal.ts";
import { type ApplyType, deducedType, type ListApplyType, type StructApplyType, type StructField } from "./apply-type.ts";
import { meanTheSame, present } from "./compare.ts";
import { type FieldSet, quoted } from "./field-set.ts";
import { type Fields, hasNoFields, hasNoItems, itemElement } from "./list-items.ts";
import { compareElements, fieldElement, type PathElement, sortElements } from "./path-element.ts";

/**
 * @param object a decoded object
 * @param ignored fields to omit with everything below them
 * @param stripped fields to omit, but not what is below them
 * @returns `{}` when there are no fields; undefined when the general algorithm is needed (errors, objects without schema)
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

/** The fields to omit below a path; undefined when there are none. */
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

/** FieldsV1 text of one field and its children; `""` when neither is in the set. */
function entry(key: string, element: PathElement, inside: string, self: boolean, left: LeftOut | undefined): string {
  if (left?.ignored?.get(element)?.member) return "";
  const member = self && !left?.stripped?.get(element)?.member;
  if (inside === "") return member ? `${key}:{}` : "";
  return member ? `${key}:{".":{},${inside}}` : `${key}:{${inside}}`;
}

const joined = (before: string, next: string): string => (before === "" ? next : next === "" ? before : `${before},${next}`);

/** Fields below a struct that an empty object has too: only those that differ from the empty object's. */
function changedBelow(type: ApplyType, value: unknown, left: LeftOut | undefined): string {
  if (type.kind !== "struct") throw lookCloser;
  let text = "";
  for (const { field, key } of ordered(type)) {
    const held = present(field, (value as Fields)[field.name]); // cast: `validateTyped` has checked the object against its type
    if (held === undefined || held === field.implied) continue;
    const { element } = field;
    const inner = below(left, element);
    if (field.implied === undefined) text = joined(text, entry(key, element, allBelow(field.type, held, inner), true, left));
    else text = joined(text, changed(field, key, held, left, inner));
  }
  return text;
}

/** FieldsV1 text of a field that an empty object has too, with its zero value. */
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

/** All fields below a value that an empty object lacks. */
function allBelow(type: ApplyType, value: unknown, left: LeftOut | undefined): string {
  if (typeof value !== "object" || value === null) return "";
  switch (type.kind) {
    case "scalar":
      return "";
    case "list":
      // Cast: `validateTyped` has checked the object against its type.
      return type.relation === "atomic" || hasNoItems(value) ? "" : items(type, value as unknown[], left);
    case "map":
      return type.atomic ? "" : entries(type.value, value as Fields, left); // cast: `validateTyped` has checked the object against its type
    case "any":
      // Cast: `validateTyped` has checked the object against its type.
      return type.atomic || hasNoFields(value) ? "" : entries(deducedType, value as Fields, left);
    case "struct":
      return type.atomic ? "" : fields(type, value as Fields, left); // cast: `validateTyped` has checked the object against its type
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
  const names = Object.keys(map);
  if (names.length > valuesPerStep) throw lookCloser; // the general algorithm works in steps
  let text = "";
  const elements = sortElements(names.map(fieldElement));
  const quote = elements.length > mostRepeated ? quoted : quotedOnce;
  for (const element of elements) {
    const inside = type.kind === "scalar" ? "" : allBelow(type, map[element.slice(2)], below(left, element));
    text = joined(text, entry(quote(element), element, inside, true, left));
  }
  return text;
}

function items(list: ListApplyType, values: readonly unknown[], left: LeftOut | undefined): string {
  if (values.length > valuesPerStep) throw lookCloser; // the general algorithm works in steps
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

/** Cache of quoted keys: label keys, ports and variable names repeat between objects. Bounded, as they come from users. */
const quotedTexts = new Map<PathElement, string>();
const mostQuoted = 4096;
/** The keys of larger maps would only displace those that repeat. */
const mostRepeated = 512;

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
  /** The quoted FieldsV1 key. */
  readonly key: string;
}

/** A pure cache: types do not change. */
const orders = new WeakMap<StructApplyType, readonly OrderedField[]>();

/** The fields in FieldsV1 order. Only for built-in types: field names of others come from users. */
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
