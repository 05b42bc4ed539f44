/**
 * The Common Expression Language as Kubernetes 1.23 has it: cel-go v0.9 with its extended texts.
 * https://github.com/google/cel-spec
 */
import type { Budget } from "./budget.ts";
import { check } from "./checker.ts";
import { Interpreter } from "./interpreter.ts";
import { formatIssues } from "./issues.ts";
import { parse } from "./parser.ts";
import { PatternCache } from "./patterns.ts";
import type { Type } from "./types.ts";
import type { Value } from "./values.ts";

export interface Program {
  readonly type: Type;
  /**
   * @param variables by the names that the expression was compiled for
   * @throws BudgetExceeded
   */
  evaluate(variables: ReadonlyMap<string, Value>, budget: Budget): Value;
}

/** @param variables the types of the names that the expression may use */
export function compile(text: string, variables: ReadonlyMap<string, Type>): Program | { readonly fault: string } {
  const { expression, issues } = parse(text);
  if (issues.length > 0) return { fault: formatIssues(text, issues) };
  const checked = check(expression, variables);
  if (checked.issues.length > 0) return { fault: formatIssues(text, checked.issues) };
  const patterns = new PatternCache();
  return {
    type: checked.type,
    evaluate: (values, budget) => new Interpreter(values, budget, patterns).evaluate(expression),
  };
}
