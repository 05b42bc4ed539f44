/**
 * Operations on typed values: collecting the fields a value sets, merging a configuration into an object, and removing
 * fields. None mutates its arguments; results share unchanged parts.
 * Source: structured-merge-diff v4 typed/tofieldset.go, merge.go, remove.go
 */
import { setOwn } from "../../codec/json-parse.ts";
import { type ApplyType, deducedType, type ListApplyType } from "./apply-type.ts";
import { addMember, childrenOf, type FieldNode, type FieldSet, FieldSetBuilder } from "./field-set.ts";
import { type Fields, hasNoFields, hasNoItems, isFields, itemElement } from "./list-items.ts";
import { fieldElement, type PathElement } from "./path-element.ts";

/**
 * The set of fields in the value, which its writer owns.
 * @param value must be valid for the type
 * @param whole the value is a decoded object, which includes the fields that Go always writes
 */
export function fieldSetOf(type: ApplyType, value: unknown, whole = false): FieldSet {
  const builder = new FieldSetBuilder();
  addBelow(type, value, builder.below([]), whole);
  return builder.set();
}

function addBelow(type: ApplyType, value: unknown, nodes: Map<PathElement, FieldNode>, whole: boolean): void {
  switch (type.kind) {
    case "list":
      if (type.relation === "atomic" || hasNoItems(value)) return;
      for (const item of value as unknown[]) {
        const element = itemElement(type, item);
        addMember(nodes, element);
        if (isContainer(item)) addBelow(type.element, item, childrenOf(nodes, element), whole);
      }
      return;
    case "map":
    case "any":
      if (type.atomic || !isFields(value)) return;
      for (const key in value) {
        const element = fieldElement(key);
        addMember(nodes, element);
        if (isContainer(value[key])) {
          addBelow(type.kind === "map" ? type.value : deducedType, value[key], childrenOf(nodes, element), whole);
        }
      }
      return;
    case "struct":
      if (type.atomic || !isFields(value)) return;
      for (const key in value) {
        const field = type.fields.get(key);
        const fieldType = field?.type ?? type.other;
        if (fieldType === undefined) continue;
        const held = value[key];
        const element = field?.element ?? fieldElement(key);
        // A declared container with contents is not a member itself, only its contents are.
        if (field === undefined || isLeaf(fieldType, held)) addMember(nodes, element);
        if (isContainer(held)) addBelow(fieldType, held, childrenOf(nodes, element), whole);
      }
      if (whole) for (const field of type.impliedFields) if (!Object.hasOwn(value, field.name)) addMember(nodes, field.element);
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

/** Merges `config` over `live`: nothing is removed, items keep the order of `live`, new ones are appended. */
export function merge(type: ApplyType, live: unknown, config: unknown): unknown {
  if (config === undefined) return live;
  if (live === undefined) return config;
  switch (type.kind) {
    case "scalar":
      return config;
    case "list":
      if (type.relation === "atomic" || (hasNoItems(live) && hasNoItems(config))) return config;
      return mergeItems(type, (live as unknown[]) ?? [], (config as unknown[]) ?? []);
    case "any":
      if (type.atomic || !isFields(live) || !isFields(config)) return config;
      return mergeFields(() => deducedType, live, config);
    case "map":
      if (type.atomic || (hasNoFields(live) && hasNoFields(config))) return config;
      return mergeFields(() => type.value, (live as Fields) ?? {}, (config as Fields) ?? {});
    case "struct":
      if (type.atomic || (hasNoFields(live) && hasNoFields(config))) return config;
      return mergeFields(
        (key) => type.fields.get(key)?.type ?? type.other ?? deducedType,
        (live as Fields) ?? {},
        (config as Fields) ?? {},
      );
  }
}

function mergeFields(typeOf: (key: string) => ApplyType, live: Fields, config: Fields): unknown {
  const merged: Record<string, unknown> = {};
  for (const key of Object.keys(live)) {
    setOwn(merged, key, Object.hasOwn(config, key) ? merge(typeOf(key), live[key], config[key]) : live[key]);
  }
  for (const key of Object.keys(config)) if (!Object.hasOwn(live, key)) setOwn(merged, key, config[key]);
  return merged;
}

function mergeItems(list: ListApplyType, live: readonly unknown[], config: readonly unknown[]): unknown[] {
  const wanted = new Map(config.map((item) => [itemElement(list, item), item]));
  const merged = live.map((item) => {
    const element = itemElement(list, item);
    const own = wanted.get(element);
    wanted.delete(element);
    return merge(list.element, item, own);
  });
  for (const item of wanted.values()) merged.push(item); // push(...) would overflow the stack with many items
  return merged;
}

/** @returns the value without the fields; null for a container that becomes empty. */
export function removeFields(type: ApplyType, value: unknown, fields: FieldSet): unknown {
  if (fields.size === 0) return value;
  switch (type.kind) {
    case "scalar":
      return value;
    case "list":
      if (type.relation === "atomic" || hasNoItems(value)) return null;
      return removeItems(type, value as unknown[], fields);
    case "any":
      if (!isFields(value)) return Array.isArray(value) ? null : value;
      return type.atomic ? null : removeKeys(() => deducedType, value, fields);
    case "map":
      if (type.atomic || hasNoFields(value)) return null;
      return removeKeys(() => type.value, value as Fields, fields);
    case "struct":
      if (type.atomic || hasNoFields(value)) return null;
      return removeKeys((key) => type.fields.get(key)?.type ?? type.other ?? deducedType, value as Fields, fields);
  }
}

function removeItems(list: ListApplyType, items: readonly unknown[], fields: FieldSet): unknown {
  const left: unknown[] = [];
  for (const item of items) {
    const node = fields.get(itemElement(list, item));
    if (node?.member) continue;
    left.push(node?.children === undefined ? item : removeFields(list.element, item, node.children));
  }
  return left.length > 0 ? left : null;
}

function removeKeys(typeOf: (key: string) => ApplyType, map: Fields, fields: FieldSet): unknown {
  const left: Record<string, unknown> = {};
  let any = false;
  for (const key of Object.keys(map)) {
    const node = fields.get(fieldElement(key));
    if (node?.member) continue;
    setOwn(left, key, node?.children === undefined ? map[key] : removeFields(typeOf(key), map[key], node.children));
    any = true;
  }
  return any ? left : null;
}
