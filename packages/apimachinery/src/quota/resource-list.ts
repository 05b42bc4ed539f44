/** Arithmetic on lists of resources: name → quantity. Source: k8s.io/apiserver pkg/quota/v1/resources.go */
import { Quantity } from "../meta/quantity.ts";

export type ResourceList = Readonly<Record<string, string>>;

const zero = Quantity.parse("0");

/** @returns undefined for a name that is not there or a text that is no quantity. */
export function quantityIn(list: ResourceList, name: string): Quantity | undefined {
  return Object.hasOwn(list, name) ? Quantity.tryParse(String(list[name])) : undefined;
}

export function addResources(a: ResourceList, b: ResourceList): ResourceList {
  return combine(a, b, (left, right) => left.add(right));
}

/** The greater of both, name by name. */
export function maxResources(a: ResourceList, b: ResourceList): ResourceList {
  return combine(a, b, (left, right) => (left.cmp(right) < 0 ? right : left));
}

/** What is more than nothing of a − b. */
export function subtractNonNegative(a: ResourceList, b: ResourceList): ResourceList {
  return Object.fromEntries(
    Object.keys(a).map((name) => {
      const left = (quantityIn(a, name) ?? zero).sub(quantityIn(b, name) ?? zero);
      return [name, (left.sign < 0 ? zero : left).toString()];
    }),
  );
}

export function withoutZeros(list: ResourceList): ResourceList {
  return Object.fromEntries(Object.entries(list).filter(([name]) => quantityIn(list, name)?.isZero === false));
}

export function maskResources(list: ResourceList, names: readonly string[]): ResourceList {
  return Object.fromEntries(Object.entries(list).filter(([name]) => names.includes(name)));
}

/** Names that are in both lists and exceed the second. */
export function exceededIn(used: ResourceList, hard: ResourceList): string[] {
  return Object.keys(used).filter((name) => {
    const bound = quantityIn(hard, name);
    return bound !== undefined && (quantityIn(used, name) ?? zero).cmp(bound) > 0;
  });
}

export function negativeIn(list: ResourceList): string[] {
  return Object.keys(list).filter((name) => (quantityIn(list, name) ?? zero).sign < 0);
}

/** The same names with the same amounts, however they are written. */
export function sameResources(a: ResourceList, b: ResourceList): boolean {
  const names = Object.keys(a);
  if (names.length !== Object.keys(b).length) return false;
  return names.every((name) => {
    const [left, right] = [quantityIn(a, name), quantityIn(b, name)];
    return left !== undefined && right !== undefined && left.cmp(right) === 0;
  });
}

/** Each amount in its canonical form; what is no quantity is left out. */
export function canonicalResources(list: ResourceList): Record<string, string> {
  return Object.fromEntries(
    Object.keys(list).flatMap((name) => {
      const text = quantityIn(list, name)?.toString();
      return text === undefined ? [] : [[name, text]];
    }),
  );
}

/** `cpu=1,pods=3`, by name, as error texts have it. */
export function formatResources(list: ResourceList): string {
  return Object.keys(list)
    .sort()
    .map((name) => `${name}=${quantityIn(list, name)?.toString() ?? list[name]}`)
    .join(",");
}

function combine(a: ResourceList, b: ResourceList, join: (left: Quantity, right: Quantity) => Quantity): ResourceList {
  const result = new Map(Object.entries(a));
  for (const name of Object.keys(b)) {
    const right = quantityIn(b, name);
    if (right === undefined) continue;
    const left = quantityIn(a, name);
    result.set(name, (left === undefined ? right : join(left, right)).toString());
  }
  return Object.fromEntries(result);
}
