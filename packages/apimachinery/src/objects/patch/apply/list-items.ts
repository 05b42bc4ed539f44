/**
 * Identification of list items.
 * Source: structured-merge-diff v4 typed/helpers.go
 */
import { goQuote } from "../../meta/go-quote.ts";
import type { ListApplyType } from "./apply-type.ts";
import { type KeyField, keyElement, type PathElement, valueElement } from "./path-element.ts";

export type Fields = Readonly<Record<string, unknown>>;

/**
 * The path element of an item.
 * @param list a list that is not atomic
 * @throws Error for an item that cannot be identified, e.g. without its key
 */
export function itemElement(list: ListApplyType, item: unknown): PathElement {
  if (list.relation === "set") return setItemElement(item);
  if (item === null || item === undefined) throw new Error("associative list with keys may not have a null element");
  if (!isFields(item)) throw new Error("associative list with keys may not have non-map elements");
  const key: KeyField[] = [];
  for (const { name, default: fallback } of list.keys) {
    const own = Object.hasOwn(item, name) ? item[name] : undefined;
    const value = own === undefined ? fallback : own;
    if (value === undefined) {
      throw new Error(
        `associative list with keys has an element that omits key field ${goQuote(name)} (and doesn't have default value)`,
      );
    }
    key.push([name, value]);
  }
  return keyElement(key);
}

function setItemElement(item: unknown): PathElement {
  if (item === null || item === undefined)
    throw new Error("associative list without keys has an element that's an explicit null");
  if (Array.isArray(item)) throw new Error("not supported: associative list with lists as elements");
  if (typeof item === "object") throw new Error("associative list without keys has an element that's a map type");
  return valueElement(item);
}

/** A JSON object. */
export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isEmptyMap(value: unknown): boolean {
  // Cast: called for values of a map's type.
  for (const key in value as object) if (Object.hasOwn(value as object, key)) return false;
  return true;
}

/** Null, absent, or a map without keys. */
export function hasNoFields(value: unknown): boolean {
  return !isFields(value) || isEmptyMap(value);
}

/** Null, absent, or a list without items. */
export function hasNoItems(value: unknown): boolean {
  return !Array.isArray(value) || value.length === 0;
}
