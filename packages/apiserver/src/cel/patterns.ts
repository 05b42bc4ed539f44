/**
 * Regular expressions in time that is proportional to the text: RE2's.
 * Source: Go's regexp package, which cel-go matches by
 */
import { instructionsOf, Pattern, PatternError } from "@coxswain/apimachinery/validation/pattern";
import type { Budget } from "./budget.ts";
import { Failure } from "./values.ts";

/** What compiling takes for each instruction, and matching for each instruction and character, in steps of a budget. */
const stepsOfInstruction = 20;
const stepsOfMatch = 0.1;

/** Of each call in an expression, the last pattern: mostly it is a constant. */
export class PatternCache {
  readonly #last = new WeakMap<object, Pattern>();

  matches(text: string, pattern: string, call: object, budget: Budget): boolean | Failure {
    let compiled = this.#last.get(call);
    if (compiled?.source !== pattern) {
      // Above all repetitions cost, in time and in memory: they make up to a thousand times of what they repeat.
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
