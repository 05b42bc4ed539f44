import {
  addErrors,
  child,
  duplicate,
  type FieldError,
  forbiddenField,
  index,
  invalidValue,
  mapKey,
  notSupported,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { dns1123SubdomainProblems } from "@coxswain/apimachinery/objects/validation/dns";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";

/**
 * Validation helpers shared by many kinds. Each takes a value and its path and returns the field errors, an empty list when the
 * value is valid.
 */
export type Check<T> = (value: T, path: string) => FieldError[];

/** Path of errors about the whole object: how Go prints an empty field path. */
export const wholeObject = "[]";

/**
 * The struct in place of an absent one, which Go decodes as empty. Cast: a kind's type has the fields of valid objects as required;
 * defaults and validation take each for absent.
 */
export const emptyStruct = <T extends object>(): T => ({}) as T;

/** A required string or list; empty counts as missing. */
export function need(value: string | readonly unknown[] | undefined | null, path: string, detail = ""): FieldError[] {
  return value === undefined || value === null || value.length === 0 ? [required(path, detail)] : [];
}

/** Applies a check to every item, with the paths `path[0]`, `path[1]`, … */
export function each<T>(
  list: readonly T[] | undefined | null,
  path: string,
  check: (item: T, path: string) => FieldError[],
): FieldError[] {
  return (list ?? []).flatMap((item, i) => check(item, index(path, i)));
}

/** Items that are checked between two yields. */
const checkedPerStep = 1024;

/** Items with lists of their own that are checked between two yields. */
const largerPerStep = 64;

/** As `each`, in steps, for lists that a user can make large and whose check takes microseconds. */
export function* eachInSteps<T>(
  list: readonly T[] | undefined | null,
  path: string,
  check: (item: T, path: string) => FieldError[],
): Steps<FieldError[]> {
  const errors: FieldError[] = [];
  for (const [i, item] of (list ?? []).entries()) {
    if (i % checkedPerStep === checkedPerStep - 1) yield;
    addErrors(errors, check(item, index(path, i)));
  }
  return errors;
}

/** As `eachInSteps`, for items that can be large themselves: their check is in steps, too. */
export function* eachWithSteps<T>(
  list: readonly T[] | undefined | null,
  path: string,
  check: (item: T, path: string) => Steps<FieldError[]>,
): Steps<FieldError[]> {
  const errors: FieldError[] = [];
  for (const [i, item] of (list ?? []).entries()) {
    if (i % largerPerStep === largerPerStep - 1) yield;
    addErrors(errors, yield* check(item, index(path, i)));
  }
  return errors;
}

/** As `eachInSteps`, for the keys of a map, with the paths `path[a]`, `path[b]`, … */
export function* eachKeyInSteps<T>(
  map: Readonly<Record<string, T>> | undefined | null,
  path: string,
  check: (key: string, value: T, path: string) => FieldError[],
): Steps<FieldError[]> {
  const errors: FieldError[] = [];
  const all = map ?? {};
  // Object.entries of many takes several times as long as their keys.
  for (const [i, key] of Object.keys(all).entries()) {
    if (i % checkedPerStep === checkedPerStep - 1) yield;
    addErrors(errors, check(key, all[key]!, mapKey(path, key)));
  }
  return errors;
}

/** Converts messages of a check without paths to field errors. */
export function saying(messages: readonly string[], value: unknown, path: string): FieldError[] {
  return messages.map((message) => invalidValue(path, value, message));
}

/** An optional enumeration. @param valid in the order of upstream's error text */
export function optionalOneOf(value: string | undefined | null, valid: readonly string[], path: string): FieldError[] {
  return value === undefined || value === null || valid.includes(value) ? [] : [notSupported(path, value, valid)];
}

/** Like `optionalOneOf`, but empty is missing. */
export function requiredOneOf(value: string | undefined | null, valid: readonly string[], path: string): FieldError[] {
  return value ? optionalOneOf(value, valid, path) : [required(path)];
}

/** An optional number within inclusive bounds. */
export function within(value: number | undefined | null, low: number, high: number, path: string): FieldError[] {
  return value !== undefined && value !== null && (value < low || value > high)
    ? [invalidValue(path, value, `must be between ${low} and ${high}, inclusive`)]
    : [];
}

/** Items with a key that occurred before are duplicates. */
export function unique<T>(list: readonly T[] | undefined | null, path: string, keyOf: (item: T) => string): FieldError[] {
  const seen = new Set<string>();
  return each(list, path, (item, own) => {
    const key = keyOf(item);
    if (seen.has(key)) return [duplicate(own, key)];
    seen.add(key);
    return [];
  });
}

/** A required name that is a DNS-1123 subdomain. */
export function subdomainName(name: string | undefined | null, path: string): FieldError[] {
  return name ? saying(dns1123SubdomainProblems(name), name, path) : [required(path)];
}

/** One member of a union (e.g. volume sources). */
export interface Member<T> {
  readonly field: keyof T & string;
  readonly check?: (object: T, path: string) => FieldError[] | Steps<FieldError[]>;
  /** Name in the error paths of `check`, where upstream's differs from the field name. */
  readonly at?: string;
  /** Name in the error path when it is not the first member set, where upstream's differs. */
  readonly clash?: string;
  /** Always checked, never an error beside another member; it still counts as a member for those after it. */
  readonly tolerated?: boolean;
}

/** Checks that at most one member is set, in the order of `members`. @returns `found`: the number of members set */
export function* oneMember<T extends object>(
  object: T,
  members: readonly Member<T>[],
  path: string,
  clashText: string,
): Steps<{ found: number; errors: FieldError[] }> {
  const errors: FieldError[] = [];
  let found = 0;
  for (const { field, check, at = field, clash = field, tolerated } of members) {
    if (object[field] === undefined || object[field] === null) continue;
    found++;
    if (found > 1 && !tolerated) errors.push(forbiddenField(child(path, clash), clashText));
    else {
      const own = check?.(object, child(path, at)) ?? [];
      addErrors(errors, Array.isArray(own) ? own : yield* own);
    }
  }
  return { found, errors };
}
