import type { GoValue } from "./go-value.ts";

/** Comparison of two values as a tree. Leaves are values that are not compared in more detail. */
export interface Comparison {
  /** undefined when an element or entry exists on one side only. */
  readonly x: GoValue | undefined;
  readonly y: GoValue | undefined;
  /** Number of equal and of different leaves. */
  readonly same: number;
  readonly different: number;
  /** Number of descendants, and height of the tree; 0 for leaves. */
  readonly below: number;
  readonly depth: number;
  /** Fields, elements or entries; for a pointer its target. */
  readonly parts: readonly Part[];
}
export interface Part {
  readonly key: string;
  readonly value: Comparison;
}

/** Compares two values; undefined stands for a missing element or entry. */
export function compare(x: GoValue | undefined, y: GoValue | undefined): Comparison {
  if (x === undefined || y === undefined) return leaf(x, y, false);
  if (x.kind === "struct" && y.kind === "struct") {
    const parts = x.fields.map(({ name, value }, i) => ({ key: name, value: compare(value, y.fields[i]?.value) }));
    return x.whole
      ? leaf(
          x,
          y,
          parts.every((part) => part.value.different === 0),
        )
      : node(x, y, parts);
  }
  if (x.kind === "pointer" && y.kind === "pointer") {
    if (x.to === undefined || y.to === undefined) return leaf(x, y, x.to === y.to);
    return node(x, y, [{ key: "", value: compare(x.to, y.to) }]);
  }
  if (x.kind === "list" && y.kind === "list") {
    if (x.items === undefined || y.items === undefined) return leaf(x, y, x.items === y.items);
    return node(
      x,
      y,
      aligned(x.items, y.items).map((value) => ({ key: "", value })),
    );
  }
  if (x.kind === "map" && y.kind === "map") {
    if (x.entries === undefined || y.entries === undefined) return leaf(x, y, x.entries === y.entries);
    const [mine, theirs] = [x, y].map((map) => new Map((map.entries ?? []).map(({ key, value }) => [key, value])));
    const keys = [...new Set([...(mine?.keys() ?? []), ...(theirs?.keys() ?? [])])].sort();
    return node(
      x,
      y,
      keys.map((key) => ({ key, value: compare(mine?.get(key), theirs?.get(key)) })),
    );
  }
  return leaf(x, y, x.kind === "scalar" && y.kind === "scalar" && x.syntax === y.syntax);
}

function leaf(x: GoValue | undefined, y: GoValue | undefined, equal: boolean): Comparison {
  return { x, y, same: equal ? 1 : 0, different: equal ? 0 : 1, below: 0, depth: 0, parts: [] };
}

function node(x: GoValue, y: GoValue, parts: readonly Part[]): Comparison {
  const sum = (of: (value: Comparison) => number): number => parts.reduce((total, part) => total + of(part.value), 0);
  return {
    x,
    y,
    same: sum((value) => value.same),
    different: sum((value) => value.different),
    below: sum((value) => value.below + 1),
    depth: parts.reduce((deepest, part) => Math.max(deepest, part.value.depth + 1), 0),
    parts,
  };
}

/** Longer lists are compared index by index: alignment needs time and memory proportional to the product of the lengths. */
const longestAligned = 100;

/** Costs of alignment steps: a removal and an insertion cost more than one change and less than two. */
const [oneSided, changed] = [2, 3];

/** Aligns elements with minimal cost: pairs of equal elements cost nothing, of similar ones less than removal plus insertion. */
function aligned(xs: readonly GoValue[], ys: readonly GoValue[]): Comparison[] {
  if (xs.length * ys.length > longestAligned ** 2)
    return Array.from({ length: Math.max(xs.length, ys.length) }, (_, i) => compare(xs[i], ys[i]));
  const pairs = xs.map((x) => ys.map((y) => compare(x, y)));
  const pair = (i: number, j: number): Comparison => (pairs[i] as Comparison[])[j] as Comparison;
  const cost = Array.from({ length: xs.length + 1 }, () => new Array<number>(ys.length + 1).fill(0));
  const at = (i: number, j: number): number => cost[i]?.[j] ?? Number.POSITIVE_INFINITY;
  const together = (i: number, j: number): number => {
    if (i >= xs.length || j >= ys.length) return Number.POSITIVE_INFINITY;
    const { same, different } = pair(i, j);
    if (different === 0) return at(i + 1, j + 1);
    return same + 1 >= different ? at(i + 1, j + 1) + changed : Number.POSITIVE_INFINITY;
  };
  for (let i = xs.length; i >= 0; i--) {
    for (let j = ys.length; j >= 0; j--) {
      if (i === xs.length && j === ys.length) continue;
      (cost[i] as number[])[j] = Math.min(together(i, j), oneSided + at(i + 1, j), oneSided + at(i, j + 1));
    }
  }
  const steps: Comparison[] = [];
  for (let i = 0, j = 0; i < xs.length || j < ys.length; ) {
    if (together(i, j) === at(i, j)) steps.push(pair(i++, j++));
    else if (at(i, j) === oneSided + at(i + 1, j)) steps.push(compare(xs[i++], undefined));
    else steps.push(compare(undefined, ys[j++]));
  }
  return steps;
}
