/**
 * FieldsV1 of managed fields as shared objects, frozen unless large: the objects of one controller have the same ones, and an object
 * keeps its own from one revision to the next, while their text is as long as the rest of it. Parsed once a text, written
 * without a walk.
 */
import { LRUCache } from "lru-cache";
import { isJsonObject } from "../meta/json-value.ts";
import { parseJsonText } from "./json-parse.ts";

export type FieldsV1 = Readonly<Record<string, unknown>>;

const byText = new LRUCache<string, FieldsV1>({
  max: 4096,
  maxSize: 2 * 1024 * 1024,
  sizeCalculation: (_, text) => text.length + 64,
});
const texts = new WeakMap<object, string>();
/** To freeze a hundred thousand fields takes longer than to parse them; who changes what is shared is found out with few. */
const mostFrozen = 64 * 1024;

/**
 * @returns one object for one text, read only, as long as it is remembered
 * @throws Error for text that is no JSON object
 */
export function sharedFields(text: string): FieldsV1 {
  const known = byText.get(text);
  if (known !== undefined) return known;
  const fields = parseJsonText(text);
  if (!isJsonObject(fields)) throw new Error("expected an object of fields");
  if (text.length <= mostFrozen) freeze(fields);
  texts.set(fields, text);
  byText.set(text, fields as FieldsV1);
  return fields as FieldsV1;
}

/** The text that an object was made from; undefined for objects of other origin, which may change. */
export function textOfFields(fields: unknown): string | undefined {
  return typeof fields === "object" && fields !== null ? texts.get(fields) : undefined;
}

function freeze(value: object): void {
  Object.freeze(value);
  for (const inner of Object.values(value)) if (typeof inner === "object" && inner !== null) freeze(inner);
}
