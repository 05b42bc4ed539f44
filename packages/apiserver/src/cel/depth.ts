import type { Expression } from "./ast.ts";

/**
 * Whether some part of an expression stands within more others than this. The grammar bounds each of its rules, but not what
 * chains within parentheses within chains come to, and who goes through an expression does so by calling itself.
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
