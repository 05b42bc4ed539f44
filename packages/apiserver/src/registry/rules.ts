import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import { duplicate, forbiddenField, invalidValue, notSupported, required } from "@coxswain/apimachinery/errors/field-error";
import { child, index } from "@coxswain/apimachinery/errors/field-path";
import { isDns1123Subdomain } from "@coxswain/apimachinery/validation/dns";

/**
 * Shapes that recur in the rules of many kinds, so that a kind's validation reads as a list of its rules.
 * Every one takes the value and its path and returns what is wrong, nothing when all is well.
 */
export type Check<T> = (value: T, path: string) => FieldError[];

/** The path of errors about no field in particular, as upstream's empty path prints. */
export const wholeObject = "[]";

/** A required text (or list): empty and absent are the same. */
export function need(value: string | readonly unknown[] | undefined | null, path: string, detail = ""): FieldError[] {
  return value === undefined || value === null || value.length === 0 ? [required(path, detail)] : [];
}

/** `path[0]`, `path[1]`, … each by the same check. */
export function each<T>(
  list: readonly T[] | undefined | null,
  path: string,
  check: (item: T, path: string) => FieldError[],
): FieldError[] {
  return (list ?? []).flatMap((item, i) => check(item, index(path, i)));
}

/** One error for each message of a check that only knows values. */
export function saying(messages: readonly string[], value: unknown, path: string): FieldError[] {
  return messages.map((message) => invalidValue(path, value, message));
}

/** A value that may be left open, and otherwise is one of a few. @param valid in the order upstream shows them */
export function optionalOneOf(value: string | undefined | null, valid: readonly string[], path: string): FieldError[] {
  return value === undefined || value === null || valid.includes(value) ? [] : [notSupported(path, value, valid)];
}

/** Like `optionalOneOf`, but empty is missing. */
export function requiredOneOf(value: string | undefined | null, valid: readonly string[], path: string): FieldError[] {
  return value ? optionalOneOf(value, valid, path) : [required(path)];
}

/** A number within bounds, both included, when there is one. */
export function within(value: number | undefined | null, low: number, high: number, path: string): FieldError[] {
  return value !== undefined && value !== null && (value < low || value > high)
    ? [invalidValue(path, value, `must be between ${low} and ${high}, inclusive`)]
    : [];
}

/** What stands twice in a list, told at its second place. */
export function unique<T>(
  list: readonly T[] | undefined | null,
  path: string,
  keyOf: (item: T) => string | undefined,
  at = "",
): FieldError[] {
  const seen = new Set<string>();
  return each(list, path, (item, own) => {
    const key = keyOf(item);
    if (key === undefined) return [];
    if (seen.has(key)) return [duplicate(at === "" ? own : child(own, at), key)];
    seen.add(key);
    return [];
  });
}

/** A reference by name: required, and a DNS subdomain. */
export function subdomainName(name: string | undefined | null, path: string): FieldError[] {
  return name ? saying(isDns1123Subdomain(name), name, path) : [required(path)];
}

/** One member of a union: where its errors stand, and under which name a second member is refused. */
export interface Member<T> {
  readonly field: keyof T & string;
  readonly check?: (object: T, path: string) => FieldError[];
  /** The name in the paths of its own errors, where upstream uses another one than the field's. */
  readonly at?: string;
  /** The name in the error for a second member, likewise. */
  readonly clash?: string;
  /** Checked also beside another member, and never refused for one; those after it are. */
  readonly tolerated?: boolean;
}

/** At most one member of a union is set, checked in the table's order. @returns how many are set, besides what is wrong */
export function oneMember<T extends object>(
  object: T,
  members: readonly Member<T>[],
  path: string,
  clashText: string,
): { found: number; errors: FieldError[] } {
  const errors: FieldError[] = [];
  let found = 0;
  for (const { field, check, at = field, clash = field, tolerated } of members) {
    if (object[field] === undefined || object[field] === null) continue;
    found++;
    if (found > 1 && !tolerated) errors.push(forbiddenField(child(path, clash), clashText));
    else errors.push(...(check?.(object, child(path, at)) ?? []));
  }
  return { found, errors };
}
