/**
 * Interned FieldsV1 values of managedFields, frozen unless large. Objects of one controller, and successive revisions of
 * an object, have identical fields, and their text is often as long as the rest of the object. Each text is parsed once
 * and written back without encoding.
 */
import { LRUCache } from "lru-cache";
import { atOnce, type Steps } from "../../process/event-loop/steps.ts";
import { isJsonObject } from "../meta/json-value.ts";
import { parseJsonInSteps, parseJsonText } from "./json-parse.ts";

export type FieldsV1 = Readonly<Record<string, unknown>>;

const byText = new LRUCache<string, FieldsV1>({
  max: 4096,
  maxSize: 2 * 1024 * 1024,
  sizeCalculation: (_, text) => text.length + 64,
});
/** Size of the interned values, for the memory budget. */
export const fieldsMemory = {
  get bytes(): number {
    return byText.calculatedSize;
  },
  limitBytes: byText.maxSize,
};
/** The text of each interned value, which is frozen: a pure cache. */
const texts = new WeakMap<object, string>();
/** Longer texts are not frozen: freezing takes longer than parsing, and small values suffice to detect illegal mutation. */
const mostFrozen = 64 * 1024;

/**
 * @returns a read-only object, the same one for equal texts as long as it is cached
 * @throws Error for text that is not a JSON object
 */
export function sharedFields(text: string): FieldsV1 {
  return atOnce(shared(text, false));
}

/** As `sharedFields`, for texts of many fields. */
export function sharedFieldsInSteps(text: string): Steps<FieldsV1> {
  return shared(text, text.length > mostFrozen);
}

function* shared(text: string, inSteps: boolean): Steps<FieldsV1> {
  const known = byText.get(text);
  if (known !== undefined) return known;
  const fields = inSteps ? yield* parseJsonInSteps(text) : parseJsonText(text);
  if (!isJsonObject(fields)) throw new Error("expected an object of fields");
  if (text.length <= mostFrozen) freeze(fields);
  texts.set(fields, text);
  byText.set(text, fields);
  return fields;
}

/** The text that `sharedFields` parsed the object from; undefined for other objects, which may be mutable. */
export function textOfFields(fields: unknown): string | undefined {
  return typeof fields === "object" && fields !== null ? texts.get(fields) : undefined;
}

function freeze(value: object): void {
  Object.freeze(value);
  for (const inner of Object.values(value)) if (typeof inner === "object" && inner !== null) freeze(inner);
}
