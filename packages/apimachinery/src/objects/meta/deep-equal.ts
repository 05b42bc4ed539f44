import type { Steps } from "../../process/event-loop/steps.ts";

// `for in` uses the enum cache of an object's shape in V8; Object.keys would allocate an array for each object.

/**
 * Compares JSON values. A key with the value undefined counts as absent.
 */
export function deepEqual(a: unknown, b: unknown): boolean {
  if (Object.is(a, b) || a === b) return true;
  if (!isContainer(a) || !isContainer(b)) return false;
  if (Array.isArray(a)) return Array.isArray(b) && sameItems(a, b, deepEqual);
  if (Array.isArray(b)) return false;
  let present = 0;
  for (const key in a) {
    if (!Object.hasOwn(a, key) || a[key] === undefined) continue;
    if (!Object.hasOwn(b, key) || !deepEqual(a[key], b[key])) return false;
    present++;
  }
  for (const key in b) if (Object.hasOwn(b, key) && b[key] !== undefined) present--;
  return present === 0;
}

/**
 * As Go's Semantic.DeepEqual on API objects: absent, null, empty list and empty map are equal.
 * Source: k8s.io/apimachinery pkg/api/equality
 */
export function semanticEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (a === undefined || a === null || b === undefined || b === null) return isEmpty(a) && isEmpty(b);
  if (!isContainer(a) || !isContainer(b)) return false;
  if (Array.isArray(a)) return Array.isArray(b) && sameItems(a, b, semanticEqual);
  if (Array.isArray(b)) return false;
  for (const key in a) {
    if (!Object.hasOwn(a, key)) continue;
    if (!semanticEqual(a[key], Object.hasOwn(b, key) ? b[key] : undefined)) return false;
  }
  for (const key in b) {
    if (Object.hasOwn(b, key) && !Object.hasOwn(a, key) && !isEmpty(b[key])) return false;
  }
  return true;
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null) return true;
  if (typeof value !== "object") return false;
  return Array.isArray(value) ? value.length === 0 : Object.keys(value).length === 0;
}

function sameItems(a: readonly unknown[], b: readonly unknown[], same: (a: unknown, b: unknown) => boolean): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i] && !same(a[i], b[i])) return false;
  return true;
}

/** A deep copy of a JSON value. Keys such as `__proto__` remain plain keys. */
export function deepClone<T>(value: T): T {
  return clone(value) as T; // cast: a copy has the type of its original
}

/** Objects of more keys have no shape (they are hash tables in V8): spreading them takes three times as long as assigning. */
const mostSpread = 512;

function cloneOfMany(value: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(value)) {
    if (key === "__proto__") Object.defineProperty(copy, key, { ...plain, value: clone(value[key]) });
    else copy[key] = clone(value[key]);
  }
  return copy;
}

const plain = { writable: true, enumerable: true, configurable: true };

function clone(value: unknown): unknown {
  if (!isContainer(value)) return value;
  if (Array.isArray(value)) {
    const list = new Array(value.length);
    for (let i = 0; i < value.length; i++) list[i] = clone(value[i]);
    return list;
  }
  let count = 0;
  for (const _ in value) if (++count > mostSpread) return cloneOfMany(value);
  // A spread copies the shape of the original at once; assigning key by key would cause a shape transition for each.
  const copy: Record<string, unknown> = { ...value };
  for (const key in copy) {
    const member = copy[key];
    if (typeof member === "object" && member !== null) copy[key] = clone(member);
  }
  return copy;
}

/** Values that are copied, compared or encoded between two yields: about a millisecond. */
export const valuesPerStep = 2048;
/** Fewer values are copied, compared or encoded in a few milliseconds. */
const manyValues = 8192;

/** True when the value has more than `most` members at all levels together. */
export function hasManyValues(value: unknown, most = manyValues): boolean {
  return membersLeft(value, most) < 0;
}

function membersLeft(value: unknown, most: number): number {
  if (!isContainer(value)) return most;
  let left = most;
  if (Array.isArray(value)) {
    left -= value.length;
    for (let i = 0; i < value.length && left >= 0; i++) left = membersLeft(value[i], left);
    return left;
  }
  for (const key in value) {
    if (--left < 0) return left;
    left = membersLeft(value[key], left);
  }
  return left;
}

/** As `deepClone`, in steps for many values. */
export function* deepCloneInSteps<T>(value: T): Steps<T> {
  if (!hasManyValues(value)) return deepClone(value);
  yield;
  const root: Record<string, unknown> = {};
  /** Containers whose members are not copied yet, with their copies. */
  const open: [from: Members, to: Members][] = [];
  const put = (to: Members, key: string | number, member: unknown): void => {
    const copy = !isContainer(member) ? member : Array.isArray(member) ? new Array(member.length) : {};
    setMember(to, key, copy);
    if (isContainer(member) && isContainer(copy)) open.push([member, copy]);
  };
  put(root, "value", value);
  let count = 0;
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [from, to] = next;
    const keys = Array.isArray(from) ? from.keys() : Object.keys(from);
    for (const key of keys) {
      put(to, key, from[key]);
      if (++count % valuesPerStep === 0) yield;
    }
  }
  return root["value"] as T; // cast: a copy has the type of its original
}

type Members = Record<string | number, unknown>;

function setMember(to: Members, key: string | number, member: unknown): void {
  if (key === "__proto__") Object.defineProperty(to, key, { ...plain, value: member });
  else to[key] = member;
}

/** As `deepEqual`, in steps for many values. */
export function* deepEqualInSteps(a: unknown, b: unknown): Steps<boolean> {
  if (!hasManyValues(a)) return deepEqual(a, b);
  yield;
  const open: [unknown, unknown][] = [[a, b]];
  let count = 0;
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [left, right] = next;
    if (left === right) continue;
    if (!isContainer(left) || !isContainer(right)) {
      if (Object.is(left, right)) continue;
      return false;
    }
    if (Array.isArray(left) !== Array.isArray(right)) return false;
    const keys = presentKeys(left);
    if (keys.length !== presentKeys(right).length) return false;
    if (keys.length > valuesPerStep) yield;
    for (const key of keys) {
      if (!Object.hasOwn(right, key)) return false;
      const [one, other] = [left[key], right[key]];
      if (isContainer(one) && isContainer(other)) open.push([one, other]);
      else if (!Object.is(one, other) && one !== other) return false;
      if (++count % valuesPerStep === 0) yield;
    }
  }
  return true;
}

/** As `semanticEqual`, in steps for many values. */
export function* semanticEqualInSteps(a: unknown, b: unknown): Steps<boolean> {
  if (!hasManyValues(a)) return semanticEqual(a, b);
  yield;
  const open: [unknown, unknown][] = [[a, b]];
  let count = 0;
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [left, right] = next;
    if (left === right) continue;
    if (!isContainer(left) || !isContainer(right) || Array.isArray(left) !== Array.isArray(right)) {
      if (!semanticEqual(left, right)) return false;
      continue;
    }
    if (Array.isArray(left) && left.length !== right["length"]) return false;
    for (const key of Object.keys(left)) {
      const [one, other] = [left[key], Object.hasOwn(right, key) ? right[key] : undefined];
      if (isContainer(one) && isContainer(other)) open.push([one, other]);
      else if (!semanticEqual(one, other)) return false;
      if (++count % valuesPerStep === 0) yield;
    }
    for (const key of Object.keys(right)) {
      if (!Object.hasOwn(left, key) && !isEmpty(right[key])) return false;
      if (++count % valuesPerStep === 0) yield;
    }
  }
  return true;
}

/** True for objects and lists: they have members, which are read by key. */
export function isContainer(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

function presentKeys(value: Record<string, unknown>): string[] {
  const keys = Object.keys(value);
  return Array.isArray(value) ? keys : keys.filter((key) => value[key] !== undefined);
}
