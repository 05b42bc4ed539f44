/** Encodes large objects as JSON in steps, with the same result as `json-encode.ts`. */
import type { Steps } from "../../process/event-loop/steps.ts";
import { hasManyValues, valuesPerStep } from "../meta/deep-equal.ts";
import { type GroupVersionKind, parseGroupVersion } from "../meta/group-version.ts";
import type { FieldType, TypeDescriptor } from "../schema/descriptor.ts";
import { scheme } from "../schema/scheme.ts";
import { encodeAny, encodeValue, fieldTexts, quote, sortedKeysInSteps, typeEncoder } from "./json-encode.ts";

type Fields = Record<string, unknown>;

/** As `encodeJsonText`. @param kind default: the object's own apiVersion and kind */
export function* encodeJsonTextInSteps(object: object, kind?: GroupVersionKind): Steps<string> {
  const type = scheme.kind(kind ?? kindOf(object));
  if (!hasManyValues(object)) return type === undefined ? encodeAny(object) : encodeValue(object, type);
  yield;
  return type === undefined ? yield* new Encoding().any(object) : yield* encodeValueInSteps(object, type);
}

/** As `encodeValue`. */
export function encodeValueInSteps(object: object, type: TypeDescriptor): Steps<string> {
  return new Encoding().struct(object as Fields, type); // cast: decoded, or made by a program, as the descriptor says
}

function kindOf(object: object): GroupVersionKind {
  const { apiVersion = "", kind = "" }: { apiVersion?: string; kind?: string } = object;
  return { group: "", version: "", ...parseGroupVersion(apiVersion), kind };
}

/** Texts of the fields of each struct. A pure cache: descriptors do not change. */
const texts = new WeakMap<TypeDescriptor, ((object: Fields) => string)[]>();

class Encoding {
  #count = 0;

  /** True when it is time to yield after one more value. */
  #isDue(): boolean {
    return ++this.#count % valuesPerStep === 0;
  }

  *struct(object: Fields, type: TypeDescriptor): Steps<string> {
    const fields = texts.getOrInsertComputed(type, fieldTexts);
    let text = "";
    for (const [i, field] of type.fields.entries()) {
      const value = object[field.name];
      const filled = isContainer(value) ? yield* this.#value(value, field.type) : "";
      const part = filled === "" ? fields[i]?.(object) : `${JSON.stringify(field.name)}:${filled}`;
      if (part) text += (text === "" ? "" : ",") + part;
      if (this.#isDue()) yield;
    }
    return `{${text}}`;
  }

  *any(value: unknown): Steps<string> {
    return isContainer(value) ? (yield* this.#container(value)) || encodeAny(value) : encodeAny(value);
  }

  #container(value: object): Steps<string> {
    if (Array.isArray(value)) return this.#list(value, (item) => this.#container(item), encodeAny);
    // Cast: an object that is no list.
    return this.#map(value as Fields, (member) => this.#container(member), encodeAny);
  }

  /** @returns "" for an empty list or map, which is written by the rules of its field */
  *#value(value: object, type: FieldType): Steps<string> {
    switch (type.kind) {
      case "struct":
        return yield* this.struct(value as Fields, type.struct); // cast: decoded, or made by a program, as the descriptor says
      case "list":
        // Cast: decoded, or made by a program, as the descriptor says.
        return yield* this.#list(value as unknown[], (item) => this.#value(item, type.element), typeEncoder(type.element));
      case "map":
        // Cast: decoded, or made by a program, as the descriptor says.
        return yield* this.#map(value as Fields, (member) => this.#value(member, type.value), typeEncoder(type.value));
      case "any":
        return yield* this.#container(value);
      default:
        return typeEncoder(type)(value);
    }
  }

  /** @param inner for items that are non-empty containers @param other for all other items @returns "" for an empty list */
  *#list(list: readonly unknown[], inner: (item: object) => Steps<string>, other: (item: unknown) => string): Steps<string> {
    let text = "";
    for (const item of list) {
      const part = isContainer(item) ? (yield* inner(item)) || other(item) : other(item);
      text += (text === "" ? "[" : ",") + part;
      if (this.#isDue()) yield;
    }
    return text === "" ? "" : `${text}]`;
  }

  /** See `#list`. */
  *#map(map: Fields, inner: (member: object) => Steps<string>, other: (member: unknown) => string): Steps<string> {
    const keys = yield* sortedKeysInSteps(map);
    let text = "";
    for (const key of keys) {
      const value = map[key];
      if (value === undefined) continue;
      const part = isContainer(value) ? (yield* inner(value)) || other(value) : other(value);
      text += `${text === "" ? "{" : ","}${quote(key)}:${part}`;
      if (this.#isDue()) yield;
    }
    return text === "" ? "" : `${text}}`;
  }
}

const isContainer = (value: unknown): value is object => typeof value === "object" && value !== null;
