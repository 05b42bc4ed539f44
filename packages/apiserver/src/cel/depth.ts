import { type Expression, partsOf } from "./ast.ts";

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
