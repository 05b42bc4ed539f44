import { isContainer, semanticEqual } from "./deep-equal.ts";

/** True when `stored` has all fields of `wanted` with equal values; lists must be equal as a whole. */
export function isContained(wanted: unknown, stored: unknown): boolean {
  if (typeof wanted !== "object" || wanted === null || Array.isArray(wanted)) return semanticEqual(wanted, stored);
  if (!isContainer(stored)) return false;
  return Object.entries(wanted).every(([name, value]) => isContained(value, stored[name]));
}
