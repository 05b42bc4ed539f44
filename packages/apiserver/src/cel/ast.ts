import type { Value } from "./values.ts";

/** An expression as it is written, macros expanded. Source: google/api/expr/v1alpha1/syntax.proto */
export type Expression = Constant | Name | Select | Call | ListLiteral | MapLiteral | MessageLiteral | Fold;

interface Node {
  /** Where it is told of: names and literals where they begin, all else where its operator or bracket stands. */
  readonly at: number;
}

export interface Constant extends Node {
  readonly kind: "constant";
  readonly value: Value;
}

export interface Name extends Node {
  readonly kind: "name";
  readonly name: string;
}

export interface Select extends Node {
  readonly kind: "select";
  readonly operand: Expression;
  readonly field: string;
  /** `has(operand.field)` */
  readonly isTest: boolean;
}

/** Operators are functions with names like `_+_`. */
export interface Call extends Node {
  readonly kind: "call";
  readonly name: string;
  /** What a method is called of. */
  readonly target?: Expression;
  readonly args: readonly Expression[];
}

export interface ListLiteral extends Node {
  readonly kind: "list";
  readonly items: readonly Expression[];
}

export interface MapLiteral extends Node {
  readonly kind: "map";
  readonly entries: readonly { readonly key: Expression; readonly value: Expression }[];
}

export interface MessageLiteral extends Node {
  readonly kind: "message";
  readonly type: string;
  readonly values: readonly Expression[];
}

/** What all macros over lists and maps become. */
export interface Fold extends Node {
  readonly kind: "fold";
  /** Names each item of `range` in turn, within `condition` and `step`. */
  readonly variable: string;
  readonly range: Expression;
  /** What `accumulator` is first; then it is what `step` says, for as long as `condition` is not false. */
  readonly start: Expression;
  readonly condition: Expression;
  readonly step: Expression;
  readonly result: Expression;
}

/** Names what a fold has so far. */
export const accumulator = "__result__";

/** `a.b.c`; undefined for what is no plain path. */
export function qualifiedName(expression: Expression): string | undefined {
  if (expression.kind === "name") return expression.name;
  if (expression.kind !== "select" || expression.isTest) return undefined;
  const prefix = qualifiedName(expression.operand);
  return prefix === undefined ? undefined : `${prefix}.${expression.field}`;
}
