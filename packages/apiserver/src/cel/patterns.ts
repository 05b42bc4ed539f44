/**
 * Regular expressions in time that is proportional to the text: RE2's.
 * Source: Go's regexp package, which cel-go matches by
 */
import { RE2JS } from "re2js";
import type { Budget } from "./budget.ts";
import { Failure } from "./values.ts";

/** Of each call in an expression, the last pattern: mostly it is a constant. */
export class PatternCache {
  readonly #last = new WeakMap<object, RE2JS>();

  matches(text: string, pattern: string, call: object, budget: Budget): boolean | Failure {
    let compiled = this.#last.get(call);
    if (compiled?.pattern() !== pattern) {
      // Repetitions make more of a pattern than it is long, up to a thousandfold.
      budget.spend(pattern.length * 10);
      try {
        compiled = RE2JS.compile(pattern);
      } catch (err) {
        return new Failure((err as Error).message);
      }
      budget.spend(compiled.programSize());
      this.#last.set(call, compiled);
    }
    budget.spend(1 + (text.length * (1 + compiled.programSize() / 4)) / 10);
    return compiled.matcher(text).find();
  }
}
