/**
 * The Common Expression Language as in Kubernetes 1.23: cel-go v0.9 with the string extensions.
 * https://github.com/google/cel-spec
 */
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import type { Budget } from "./budget.ts";
import { check } from "./checker.ts";
import { foldsIn, Interpreter } from "./interpreter.ts";
import { formatIssues } from "./issues.ts";
import { parse } from "./parser.ts";
import { PatternCache } from "./patterns.ts";
import type { Type } from "./types.ts";
import type { Value } from "./values.ts";

export interface Program {
  readonly type: Type;
  /**
   * Yields within loops over lists and maps.
   * @param variables values by name, for the names passed to `compile`
   * @returns the value; a Failure for an error of the language
   * @throws BudgetExceeded
   */
  evaluate(variables: ReadonlyMap<string, Value>, budget: Budget): Steps<Value>;
}

/** Parses and type-checks an expression. @param variables types by variable name @returns `fault`: the formatted errors */
export function compile(text: string, variables: ReadonlyMap<string, Type>): Program | { readonly fault: string } {
  const { expression, issues } = parse(text);
  if (issues.length > 0) return { fault: formatIssues(text, issues) };
  const checked = check(expression, variables);
  if (checked.issues.length > 0) return { fault: formatIssues(text, checked.issues) };
  const patterns = new PatternCache();
  const withFolds = foldsIn(expression);
  return {
    type: checked.type,
    evaluate: (values, budget) => new Interpreter(values, budget, patterns, withFolds).evaluate(expression),
  };
}
