/**
 * Field-wise comparison of two states of an object. Both are decoded objects: a zero value that Go's encoder omits counts
 * as absent, one that it always writes as present.
 * Source: structured-merge-diff v4 typed/merge.go, typed.go (Compare)
 */

import { atOnce, Pace, type Steps } from "../../../process/event-loop/steps.ts";
import { messageOf } from "../../errors/message.ts";
import { deepEqual, deepEqualInSteps, hasManyValues, valuesPerStep } from "../../meta/deep-equal.ts";
import {
  type ApplyType,
  deducedType,
  type ListApplyType,
  type ScalarApplyType,
  type StructApplyType,
  type StructField,
} from "./apply-type.ts";
import { addMember, childrenOf, type FieldNode, type FieldSet, FieldSetBuilder, recursiveDifference } from "./field-set.ts";
import { type Fields, hasNoFields, hasNoItems, isFields, itemElement } from "./list-items.ts";
import { displayElement, displayPath, fieldElement, type PathElement } from "./path-element.ts";
import { TypedValueError } from "./validate.ts";

/** Three disjoint sets of fields. */
export interface Comparison {
  readonly added: FieldSet;
  readonly modified: FieldSet;
  readonly removed: FieldSet;
}

/** True when there are no differences. */
export function isSame(comparison: Comparison): boolean {
  return comparison.added.size === 0 && comparison.modified.size === 0 && comparison.removed.size === 0;
}

/** Removes the ignored fields and everything below them. */
export function withoutFields(comparison: Comparison, ignored: FieldSet): Comparison {
  if (ignored.size === 0) return comparison;
  return {
    added: recursiveDifference(comparison.added, ignored),
    modified: recursiveDifference(comparison.modified, ignored),
    removed: recursiveDifference(comparison.removed, ignored),
  };
}

/**
 * @param explicit `b` is the result of merging a configuration as the client wrote it: a null or zero value in it replaces
 *   an existing value. Where `a` has no value, a zero value is not a change.
 * @throws TypedValueError for items of an associative list with missing, invalid or duplicate keys
 */
export function compare(type: ApplyType, a: unknown, b: unknown, explicit = false): Comparison {
  return atOnce(compareInSteps(type, a, b, explicit));
}

/** As `compare`, in steps for wide lists and maps. */
export function* compareInSteps(type: ApplyType, a: unknown, b: unknown, explicit = false): Steps<Comparison> {
  const walk = new Walk(explicit);
  if (a !== b) walk.both(type, a, b);
  yield* walk.rest();
  yield;
  return { added: walk.added.set(), modified: walk.modified.set(), removed: walk.removed.set() };
}

interface ItemStep {
  readonly list: ListApplyType;
  readonly item: unknown;
}

class Walk {
  readonly added = new FieldSetBuilder();
  readonly modified = new FieldSetBuilder();
  readonly removed = new FieldSetBuilder();
  readonly #explicit: boolean;
  /** The current path. Path elements of list items are created only when a difference is found. */
  readonly #steps: (PathElement | ItemStep)[] = [];

  /** The members of wide containers, which are compared later, in steps. */
  readonly #later: Steps<void>[] = [];

  constructor(explicit: boolean) {
    this.#explicit = explicit;
  }

  /** Compares what was put off; wide containers may contain others. */
  *rest(): Steps<void> {
    for (let next = this.#later.pop(); next !== undefined; next = this.#later.pop()) {
      yield;
      yield* next;
    }
  }

  /** Puts off the work for each member of a wide container; the current path is kept for it. */
  #putOff<T>(members: () => Iterable<T>, each: (member: T) => void): void {
    const path = [...this.#steps];
    const steps = this.#steps;
    function* work(): Steps<void> {
      let count = 0;
      for (const member of members()) {
        steps.splice(0, steps.length, ...path);
        each(member);
        if (++count % valuesPerStep === 0) yield;
      }
      steps.length = 0;
    }
    this.#later.push(work());
  }

  /** Compares two present values; either may be null. */
  both(type: ApplyType, a: unknown, b: unknown): void {
    switch (type.kind) {
      case "scalar":
        if (a !== b && !meanTheSame(type, a, b)) this.modified.insert(this.#path);
        return;
      case "any":
        if (type.atomic) this.#whole(a, b);
        else this.#deduced(a, b);
        return;
      case "list":
        if (hasNoItems(a) && hasNoItems(b)) return;
        if (type.relation === "atomic") this.#whole(a, b);
        // Cast: `validateTyped` has checked the object against its type.
        else this.#items(type, (a as unknown[]) ?? [], (b as unknown[]) ?? []);
        return;
      case "map":
        if (hasNoFields(a) && hasNoFields(b)) return;
        if (type.atomic) this.#whole(a, b);
        // Cast: `validateTyped` has checked the object against its type.
        else this.#entries(type.value, (a as Fields) ?? nothing, (b as Fields) ?? nothing);
        return;
      case "struct":
        if (type.atomic) this.#whole(a, b);
        // Cast: `validateTyped` has checked the object against its type.
        else this.#fields(type, (a as Fields) ?? nothing, (b as Fields) ?? nothing);
        return;
    }
  }

  get #path(): PathElement[] {
    for (const [i, step] of this.#steps.entries()) {
      if (typeof step !== "string") this.#steps[i] = itemElement(step.list, step.item);
    }
    return this.#steps as PathElement[]; // cast: callers ask for paths without item steps only
  }

  #whole(a: unknown, b: unknown): void {
    if (!hasManyValues(a)) {
      if (!deepEqual(a, b)) this.modified.insert(this.#path);
      return;
    }
    const [path, { modified }] = [[...this.#path], this];
    function* work(): Steps<void> {
      if (!(yield* deepEqualInSteps(a, b))) modified.insert(path);
    }
    this.#later.push(work());
  }

  #deduced(a: unknown, b: unknown): void {
    const left = a === null || isFields(a);
    const right = b === null || isFields(b);
    if (left && right) {
      this.#entries(deducedType, a ?? nothing, b ?? nothing);
      return;
    }
    // A map was replaced by another type of value, or vice versa: the map's fields differ, and the value itself.
    if (left) this.#entries(deducedType, a ?? nothing, nothing);
    if (right) this.#entries(deducedType, nothing, b ?? nothing);
    this.#whole(a, b);
  }

  #fields(type: StructApplyType, a: Fields, b: Fields): void {
    for (const key in a) {
      const field = type.fields.get(key);
      if (field === undefined) this.#undeclared(type, key, a[key], Object.hasOwn(b, key) ? b[key] : undefined);
      else this.#field(field, present(field, a[key]), b[key]);
    }
    for (const key in b) {
      if (Object.hasOwn(a, key)) continue;
      const field = type.fields.get(key);
      if (field === undefined) this.#undeclared(type, key, undefined, b[key]);
      else this.#field(field, field.implied, b[key]);
    }
  }

  /** @param a effective value, with implied zero @param b value as it is in the object */
  #field(field: StructField, a: unknown, b: unknown): void {
    const takesPlace = this.#explicit && a !== undefined && b !== undefined && (b !== null || field.implied === undefined);
    this.#child(field.element, field.type, a, takesPlace ? b : present(field, b));
  }

  #undeclared(type: StructApplyType, key: string, a: unknown, b: unknown): void {
    if (type.other !== undefined) this.#child(fieldElement(key), type.other, a, b);
  }

  #entries(type: ApplyType, a: Fields, b: Fields): void {
    if (widthOf(a) > valuesPerStep || widthOf(b) > valuesPerStep) {
      const entry = (key: string): void => {
        this.#child(
          fieldElement(key),
          type,
          Object.hasOwn(a, key) ? a[key] : undefined,
          Object.hasOwn(b, key) ? b[key] : undefined,
        );
      };
      this.#putOff(() => Object.keys(a), entry);
      this.#putOff(
        () => Object.keys(b),
        (key) => Object.hasOwn(a, key) || entry(key),
      );
      return;
    }
    for (const key in a) this.#child(fieldElement(key), type, a[key], Object.hasOwn(b, key) ? b[key] : undefined);
    for (const key in b) if (!Object.hasOwn(a, key)) this.#child(fieldElement(key), type, undefined, b[key]);
  }

  #items(list: ListApplyType, a: readonly unknown[], b: readonly unknown[]): void {
    if (a.length === b.length && a.every((item, i) => sameKeys(list, item, b[i]))) {
      const compareAt = (i: number): void => {
        if (a[i] === b[i]) return;
        this.#steps.push({ list, item: a[i] });
        this.both(list.element, a[i], b[i]);
        this.#steps.pop();
      };
      if (a.length > valuesPerStep) this.#putOff(() => a.keys(), compareAt);
      else for (let i = 0; i < a.length; i++) compareAt(i);
      return;
    }
    const work = this.#unlikeItems(list, a, b);
    if (a.length + b.length > valuesPerStep) this.#later.push(this.#at([...this.#path], work));
    else atOnce(work);
  }

  /** Compares lists whose items are not the same in the same order. */
  *#unlikeItems(list: ListApplyType, a: readonly unknown[], b: readonly unknown[]): Steps<void> {
    const pace = new Pace(valuesPerStep);
    const others = yield* this.#byElement(list, b, pace);
    const own = yield* this.#byElement(list, a, pace);
    for (const [element, item] of own) {
      this.#child(element, list.element, item, others.get(element));
      if (pace.isDue()) yield;
    }
    for (const [element, item] of others) {
      if (!own.has(element)) this.#child(element, list.element, undefined, item);
      if (pace.isDue()) yield;
    }
  }

  /** Work that was put off, with the path at which it was. */
  *#at(path: readonly PathElement[], work: Steps<void>): Steps<void> {
    this.#steps.splice(0, this.#steps.length, ...path);
    yield* work;
    this.#steps.length = 0;
  }

  #elementOf(list: ListApplyType, item: unknown, i: number): PathElement {
    try {
      return itemElement(list, item);
    } catch (err) {
      throw new TypedValueError([`${displayPath(this.#path)}: element ${i}: ${messageOf(err)}`]);
    }
  }

  *#byElement(list: ListApplyType, items: readonly unknown[], pace: Pace): Steps<Map<PathElement, unknown>> {
    const found = new Map<PathElement, unknown>();
    for (const [i, item] of items.entries()) {
      const element = this.#elementOf(list, item, i);
      if (found.has(element)) throw duplicate(this.#path, element);
      found.set(element, item);
      if (pace.isDue()) yield;
    }
    return found;
  }

  #child(element: PathElement, type: ApplyType, a: unknown, b: unknown): void {
    if (a === b) return;
    if (a === undefined) this.#onlyIn(this.added, element, type, b);
    else if (b === undefined) this.#onlyIn(this.removed, element, type, a);
    else {
      this.#steps.push(element);
      this.both(type, a, b);
      this.#steps.pop();
    }
  }

  /** Adds the field and everything below it to the set. */
  #onlyIn(set: FieldSetBuilder, element: PathElement, type: ApplyType, value: unknown): void {
    this.#fill(set.below(this.#path), element, type, value);
  }

  #fill(nodes: Map<PathElement, FieldNode>, element: PathElement, type: ApplyType, value: unknown): void {
    addMember(nodes, element);
    if (typeof value !== "object" || value === null) return;
    switch (type.kind) {
      case "list":
        if (type.relation === "atomic" || hasNoItems(value)) return;
        // Cast: `validateTyped` has checked the object against its type.
        this.#fillItems(childrenOf(nodes, element), type, value as unknown[], element);
        return;
      case "map":
        if (!type.atomic) this.#fillEntries(nodes, element, type.value, value);
        return;
      case "struct":
        if (type.atomic) return;
        this.#fillFields(nodes, element, type, value as Fields); // cast: `validateTyped` has checked the object against its type
        return;
      case "any":
        if (!type.atomic) this.#fillEntries(nodes, element, deducedType, value);
        return;
    }
  }

  #fillItems(nodes: Map<PathElement, FieldNode>, list: ListApplyType, items: readonly unknown[], parent: PathElement): void {
    const fill = ([i, item]: [number, unknown]): void => {
      const element = this.#elementOf(list, item, i);
      if (nodes.has(element)) throw duplicate([...this.#path, parent], element);
      this.#fill(nodes, element, list.element, item);
    };
    if (items.length > valuesPerStep) this.#putOff(() => items.entries(), fill);
    else for (const entry of items.entries()) fill(entry);
  }

  #fillEntries(nodes: Map<PathElement, FieldNode>, parent: PathElement, type: ApplyType, map: object): void {
    const width = isFields(map) ? widthOf(map) : 0;
    if (!isFields(map) || width === 0) return;
    const children = childrenOf(nodes, parent);
    const fill = (key: string): void => this.#fill(children, fieldElement(key), type, map[key]);
    if (width > valuesPerStep) this.#putOff(() => Object.keys(map), fill);
    else for (const key in map) fill(key);
  }

  #fillFields(nodes: Map<PathElement, FieldNode>, element: PathElement, type: StructApplyType, value: Fields): void {
    let children: Map<PathElement, FieldNode> | undefined;
    for (const key in value) {
      const field = type.fields.get(key);
      const held = field === undefined ? value[key] : present(field, value[key]);
      const fieldType = field?.type ?? type.other;
      if (held === undefined || fieldType === undefined) continue;
      children ??= childrenOf(nodes, element);
      this.#fill(children, field?.element ?? fieldElement(key), fieldType, held);
    }
    for (const field of type.impliedFields) {
      if (Object.hasOwn(value, field.name)) continue;
      children ??= childrenOf(nodes, element);
      this.#fill(children, field.element, field.type, field.implied);
    }
  }
}

/** True for different texts with the same canonical form. */
export function meanTheSame({ canonical }: ScalarApplyType, a: unknown, b: unknown): boolean {
  if (canonical === undefined || a === null || b === null) return false;
  const text = canonical(String(a));
  return text !== undefined && text === canonical(String(b));
}

/** True when both items have the same path element. May be false for equal ones with unusual keys. */
function sameKeys(list: ListApplyType, a: unknown, b: unknown): boolean {
  if (list.relation === "set") return a === b && typeof a !== "object";
  if (!isFields(a) || !isFields(b)) return false;
  for (const { name, default: fallback } of list.keys) {
    const key = a[name] ?? fallback;
    if (key === undefined || typeof key === "object" || key !== (b[name] ?? fallback)) return false;
  }
  return true;
}

const nothing: Fields = Object.freeze({});

/** The number of keys, counted up to one more than `valuesPerStep`. Even the first key of many costs the collection of all. */
function widthOf(map: Fields): number {
  let count = 0;
  for (const _ in map) if (++count > valuesPerStep) break;
  return count;
}

function duplicate(path: readonly PathElement[], element: PathElement): TypedValueError {
  return new TypedValueError([`${displayPath(path)}: duplicate entries for key ${displayElement(element)}`]);
}

/** The field's effective value under Go's omitempty rules; undefined when it is absent. */
export function present(field: StructField, value: unknown): unknown {
  if (value === undefined || value === null) return field.implied;
  if (field.omitsZero && isZero(value)) return undefined;
  return value;
}

function isZero(value: unknown): boolean {
  if (typeof value === "object") return Array.isArray(value) ? value.length === 0 : hasNoFields(value);
  return value === "" || value === 0 || value === false;
}
