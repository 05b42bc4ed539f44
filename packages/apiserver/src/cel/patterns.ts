/**
 * Regular expressions with RE2 semantics, matched in time linear in the length of the text.
 * Source: Go's regexp package, which cel-go uses
 */
import { instructionsOf, Pattern, PatternError } from "@coxswain/apimachinery/objects/validation/pattern";
import type { Budget } from "./budget.ts";
import { Failure } from "./values.ts";

/** Cost in budget steps: of compiling, per instruction; of matching, per instruction and character. */
const stepsOfInstruction = 20;
const stepsOfMatch = 0.1;

/** Caches the last compiled pattern of each `matches` call in an expression; it is usually a constant. */
export class PatternCache {
  readonly #last = new WeakMap<object, Pattern>();

  matches(text: string, pattern: string, call: object, budget: Budget): boolean | Failure {
    let compiled = this.#last.get(call);
    if (compiled?.source !== pattern) {
      // Charged before compiling: a repetition expands its operand up to a thousand times, in time and memory.
      budget.spend(instructionsOf(pattern) * stepsOfInstruction);
      try {
        compiled = new Pattern(pattern);
      } catch (err) {
        if (err instanceof PatternError) return new Failure(err.message);
        throw err;
      }
      this.#last.set(call, compiled);
    }
    budget.spend(1 + compiled.steps(text.length) * stepsOfMatch);
    return compiled.matches(text);
  }
}
