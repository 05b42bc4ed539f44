import type { Value } from "./values.ts";

/** Syntax tree of an expression, with macros expanded. Source: google/api/expr/v1alpha1/syntax.proto */
export type Expression = Constant | Name | Select | Call | ListLiteral | MapLiteral | MessageLiteral | Fold;

interface Node {
  /**
   * Position for error messages, in UTF-16 code units: the start of a name or literal, otherwise the position of the operator
   * or opening bracket.
   */
  readonly at: number;
}

interface Constant extends Node {
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
  /** Receiver of a method call. */
  readonly target?: Expression;
  readonly args: readonly Expression[];
}

interface ListLiteral extends Node {
  readonly kind: "list";
  readonly items: readonly Expression[];
}

interface MapLiteral extends Node {
  readonly kind: "map";
  readonly entries: readonly { readonly key: Expression; readonly value: Expression }[];
}

interface MessageLiteral extends Node {
  readonly kind: "message";
  readonly type: string;
  readonly values: readonly Expression[];
}

/** Comprehension; all macros over lists and maps expand to it. */
export interface Fold extends Node {
  readonly kind: "fold";
  /** Name of the current item of `range` in `condition` and `step`. */
  readonly variable: string;
  readonly range: Expression;
  /** Initial value of the accumulator; each iteration replaces it with `step` until `condition` is false. */
  readonly start: Expression;
  readonly condition: Expression;
  readonly step: Expression;
  readonly result: Expression;
}

/** Name of the accumulator variable of a fold. */
export const accumulator = "__result__";

/** `a.b.c`; undefined unless the expression is a name or a chain of field selections. */
export function qualifiedName(expression: Expression): string | undefined {
  if (expression.kind === "name") return expression.name;
  if (expression.kind !== "select" || expression.isTest) return undefined;
  const prefix = qualifiedName(expression.operand);
  return prefix === undefined ? undefined : `${prefix}.${expression.field}`;
}

/** The expressions that an expression consists of. */
export function partsOf(expression: Expression): readonly Expression[] {
  switch (expression.kind) {
    case "constant":
    case "name":
      return [];
    case "select":
      return [expression.operand];
    case "call":
      return expression.target === undefined ? expression.args : [expression.target, ...expression.args];
    case "list":
      return expression.items;
    case "map":
      return expression.entries.flatMap(({ key, value }) => [key, value]);
    case "message":
      return expression.values;
    case "fold":
      return [expression.range, expression.start, expression.condition, expression.step, expression.result];
  }
}
