/** Arithmetic on resource lists (name → quantity). Source: k8s.io/apiserver pkg/quota/v1/resources.go */
import { Quantity } from "../objects/meta/quantity.ts";

export type ResourceList = Readonly<Record<string, string>>;

const zero = Quantity.parse("0");

/** @returns undefined for an absent name or an invalid quantity */
export function quantityIn(list: ResourceList, name: string): Quantity | undefined {
  return Object.hasOwn(list, name) ? Quantity.tryParse(String(list[name])) : undefined;
}

/** The sum for each name in either list. */
export function addResources(a: ResourceList, b: ResourceList): ResourceList {
  return combine(a, b, (left, right) => left.add(right));
}

/** The maximum for each name. */
export function maxResources(a: ResourceList, b: ResourceList): ResourceList {
  return combine(a, b, (left, right) => (left.cmp(right) < 0 ? right : left));
}

/** a − b for the names of `a`; negative results become zero. */
export function subtractNonNegative(a: ResourceList, b: ResourceList): ResourceList {
  return Object.fromEntries(
    Object.keys(a).map((name) => {
      const left = (quantityIn(a, name) ?? zero).sub(quantityIn(b, name) ?? zero);
      return [name, (left.sign < 0 ? zero : left).toString()];
    }),
  );
}

/** @returns the list without the resources whose amount is zero or not a quantity */
export function withoutZeros(list: ResourceList): ResourceList {
  return Object.fromEntries(Object.entries(list).filter(([name]) => quantityIn(list, name)?.isZero === false));
}

/** Only the given names. */
export function maskResources(list: ResourceList, names: readonly string[]): ResourceList {
  const wanted = new Set(names); // a quota may have tens of thousands
  return Object.fromEntries(Object.entries(list).filter(([name]) => wanted.has(name)));
}

/** Names in both lists whose amount in `used` exceeds that in `hard`. */
export function exceededIn(used: ResourceList, hard: ResourceList): string[] {
  return Object.keys(used).filter((name) => {
    const bound = quantityIn(hard, name);
    return bound !== undefined && (quantityIn(used, name) ?? zero).cmp(bound) > 0;
  });
}

/** Names with a negative amount. */
export function negativeIn(list: ResourceList): string[] {
  return Object.keys(list).filter((name) => (quantityIn(list, name) ?? zero).sign < 0);
}

/** True for equal names and amounts, whatever their notation. */
export function sameResources(a: ResourceList, b: ResourceList): boolean {
  const names = Object.keys(a);
  if (names.length !== Object.keys(b).length) return false;
  return names.every((name) => {
    const [left, right] = [quantityIn(a, name), quantityIn(b, name)];
    return left !== undefined && right !== undefined && left.cmp(right) === 0;
  });
}

/** Amounts in canonical form; invalid quantities are dropped. */
export function canonicalResources(list: ResourceList): Record<string, string> {
  return Object.fromEntries(
    Object.keys(list).flatMap((name) => {
      const text = quantityIn(list, name)?.toString();
      return text === undefined ? [] : [[name, text]];
    }),
  );
}

/** The form in error texts, sorted by name: `cpu=1,pods=3`. */
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
