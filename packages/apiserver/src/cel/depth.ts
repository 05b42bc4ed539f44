import type { Expression } from "./ast.ts";

/**
 * True when an expression is nested deeper than `levels`. The grammar limits the recursion of each rule, but not of their
 * combination (chains inside parentheses inside chains), and checker and interpreter are recursive.
 */
export function isDeeperThan(levels: number, expression: Expression): boolean {
  let level: readonly Expression[] = [expression];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > levels) return true;
    level = level.flatMap(partsOf);
  }
  return false;
}

function partsOf(expression: Expression): readonly Expression[] {
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
