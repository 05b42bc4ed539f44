/**
 * Operations on typed values: collecting the fields a value sets, merging a configuration into an object, and removing
 * fields. None mutates its arguments; results share unchanged parts.
 * Source: structured-merge-diff v4 typed/tofieldset.go, merge.go, remove.go
 */
import { atOnce, Pace, type Steps } from "../../../process/event-loop/steps.ts";
import { setOwn } from "../../codec/json-parse.ts";
import { valuesPerStep } from "../../meta/deep-equal.ts";
import { type ApplyType, deducedType, type ListApplyType, type StructApplyType } from "./apply-type.ts";
import { addMember, childrenOf, type FieldNode, type FieldSet, FieldSetBuilder } from "./field-set.ts";
import { type Fields, hasNoFields, hasNoItems, isFields, itemElement } from "./list-items.ts";
import { fieldElement, type PathElement } from "./path-element.ts";

/**
 * The set of fields in the value, which its writer owns.
 * @param value must be valid for the type
 * @param whole the value is a decoded object, which includes the fields that Go always writes
 */
export function fieldSetOf(type: ApplyType, value: unknown, whole = false): FieldSet {
  return atOnce(fieldSetInSteps(type, value, whole));
}

/** As `fieldSetOf`, in steps for many values. */
export function* fieldSetInSteps(type: ApplyType, value: unknown, whole = false): Steps<FieldSet> {
  const builder = new FieldSetBuilder();
  yield* new Collector(whole).add(type, value, builder.below([]));
  return builder.set();
}

class Collector {
  readonly #whole: boolean;
  readonly #pace = new Pace(valuesPerStep);

  constructor(whole: boolean) {
    this.#whole = whole;
  }

  *add(type: ApplyType, value: unknown, nodes: Map<PathElement, FieldNode>): Steps<void> {
    switch (type.kind) {
      case "list":
        if (type.relation === "atomic" || hasNoItems(value)) return;
        // Cast: `validateTyped` has checked the object against its type.
        for (const item of value as unknown[]) {
          const element = itemElement(type, item);
          addMember(nodes, element);
          if (isContainer(item)) yield* this.add(type.element, item, childrenOf(nodes, element));
          if (this.#pace.isDue()) yield;
        }
        return;
      case "map":
      case "any":
        if (type.atomic || !isFields(value)) return;
        for (const key in value) {
          const element = fieldElement(key);
          addMember(nodes, element);
          if (isContainer(value[key])) {
            yield* this.add(type.kind === "map" ? type.value : deducedType, value[key], childrenOf(nodes, element));
          }
          if (this.#pace.isDue()) yield;
        }
        return;
      case "struct":
        if (type.atomic || !isFields(value)) return;
        yield* this.#fields(type, value, nodes);
    }
  }

  *#fields(type: StructApplyType, value: Fields, nodes: Map<PathElement, FieldNode>): Steps<void> {
    for (const key in value) {
      const field = type.fields.get(key);
      const fieldType = field?.type ?? type.other;
      if (fieldType === undefined) continue;
      const held = value[key];
      const element = field?.element ?? fieldElement(key);
      // A declared container with contents is not a member itself, only its contents are.
      if (field === undefined || isLeaf(fieldType, held)) addMember(nodes, element);
      if (isContainer(held)) yield* this.add(fieldType, held, childrenOf(nodes, element));
      if (this.#pace.isDue()) yield;
    }
    if (!this.#whole) return;
    for (const field of type.impliedFields) if (!Object.hasOwn(value, field.name)) addMember(nodes, field.element);
  }
}

function isContainer(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}

function isLeaf(type: ApplyType, value: unknown): boolean {
  if (value === null || value === undefined) return true;
  switch (type.kind) {
    case "scalar":
      return true;
    case "list":
      return type.relation === "atomic";
    default:
      return type.atomic || hasNoFields(value);
  }
}

/** Merges `config` over `live`: nothing is removed, items keep the order of `live`, new ones are appended. In steps for many values. */
export function* mergeInSteps(
  type: ApplyType,
  live: unknown,
  config: unknown,
  pace: Pace = new Pace(valuesPerStep),
): Steps<unknown> {
  if (config === undefined) return live;
  if (live === undefined) return config;
  switch (type.kind) {
    case "scalar":
      return config;
    case "list":
      if (type.relation === "atomic" || (hasNoItems(live) && hasNoItems(config))) return config;
      // Cast: `validateTyped` has checked the object against its type.
      return yield* mergeItems(type, (live as unknown[]) ?? [], (config as unknown[]) ?? [], pace);
    case "any":
      if (type.atomic || !isFields(live) || !isFields(config)) return config;
      return yield* mergeFields(() => deducedType, live, config, pace);
    case "map":
      if (type.atomic || (hasNoFields(live) && hasNoFields(config))) return config;
      // Cast: `validateTyped` has checked the object against its type.
      return yield* mergeFields(() => type.value, (live as Fields) ?? {}, (config as Fields) ?? {}, pace);
    case "struct":
      if (type.atomic || (hasNoFields(live) && hasNoFields(config))) return config;
      return yield* mergeFields(
        (key) => type.fields.get(key)?.type ?? type.other ?? deducedType,
        (live as Fields) ?? {}, // cast: `validateTyped` has checked the object against its type
        (config as Fields) ?? {}, // cast: `validateTyped` has checked the object against its type
        pace,
      );
  }
}

function* mergeFields(typeOf: (key: string) => ApplyType, live: Fields, config: Fields, pace: Pace): Steps<unknown> {
  const merged: Record<string, unknown> = {};
  for (const key of Object.keys(live)) {
    const own = Object.hasOwn(config, key) ? config[key] : undefined;
    const type = typeOf(key);
    if (own === undefined) setOwn(merged, key, live[key]);
    else setOwn(merged, key, type.kind === "scalar" ? own : yield* mergeInSteps(type, live[key], own, pace));
    if (pace.isDue()) yield;
  }
  for (const key of Object.keys(config)) {
    if (!Object.hasOwn(live, key)) setOwn(merged, key, config[key]);
    if (pace.isDue()) yield;
  }
  return merged;
}

function* mergeItems(list: ListApplyType, live: readonly unknown[], config: readonly unknown[], pace: Pace): Steps<unknown[]> {
  const wanted = new Map<PathElement, unknown>();
  for (const item of config) {
    wanted.set(itemElement(list, item), item);
    if (pace.isDue()) yield;
  }
  const merged: unknown[] = [];
  for (const item of live) {
    const element = itemElement(list, item);
    const own = wanted.get(element);
    wanted.delete(element);
    merged.push(own === undefined ? item : yield* mergeInSteps(list.element, item, own, pace));
    if (pace.isDue()) yield;
  }
  for (const item of wanted.values()) merged.push(item); // push(...) would overflow the stack with many items
  return merged;
}

/** In steps for many values. @returns the value without the fields; null for a container that becomes empty */
export function* removeFieldsInSteps(
  type: ApplyType,
  value: unknown,
  fields: FieldSet,
  pace: Pace = new Pace(valuesPerStep),
): Steps<unknown> {
  if (fields.size === 0) return value;
  switch (type.kind) {
    case "scalar":
      return value;
    case "list":
      if (type.relation === "atomic" || hasNoItems(value)) return null;
      return yield* removeItems(type, value as unknown[], fields, pace); // cast: `validateTyped` has checked the object against its type
    case "any":
      if (!isFields(value)) return Array.isArray(value) ? null : value;
      return type.atomic ? null : yield* removeKeys(() => deducedType, value, fields, pace);
    case "map":
      if (type.atomic || hasNoFields(value)) return null;
      // Cast: `validateTyped` has checked the object against its type.
      return yield* removeKeys(() => type.value, value as Fields, fields, pace);
    case "struct":
      if (type.atomic || hasNoFields(value)) return null;
      // Cast: `validateTyped` has checked the object against its type.
      return yield* removeKeys((key) => type.fields.get(key)?.type ?? type.other ?? deducedType, value as Fields, fields, pace);
  }
}

function* removeItems(list: ListApplyType, items: readonly unknown[], fields: FieldSet, pace: Pace): Steps<unknown> {
  const left: unknown[] = [];
  for (const item of items) {
    if (pace.isDue()) yield;
    const node = fields.get(itemElement(list, item));
    if (node?.member) continue;
    left.push(node?.children === undefined ? item : yield* removeFieldsInSteps(list.element, item, node.children, pace));
  }
  return left.length > 0 ? left : null;
}

function* removeKeys(typeOf: (key: string) => ApplyType, map: Fields, fields: FieldSet, pace: Pace): Steps<unknown> {
  const left: Record<string, unknown> = {};
  let any = false;
  for (const key of Object.keys(map)) {
    if (pace.isDue()) yield;
    const node = fields.get(fieldElement(key));
    if (node?.member) continue;
    const held = map[key];
    setOwn(left, key, node?.children === undefined ? held : yield* removeFieldsInSteps(typeOf(key), held, node.children, pace));
    any = true;
  }
  return any ? left : null;
}
