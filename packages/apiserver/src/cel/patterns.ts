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
      budget.spend(pattern.length * 10);
      // Above all repetitions cost, in time and in room: they make up to a thousand times of what they repeat.
      budget.spend(weightOf(pattern) * 10);
      try {
        compiled = RE2JS.compile(pattern);
      } catch (err) {
        return new Failure((err as Error).message);
      }
      this.#last.set(call, compiled);
    }
    budget.spend(1 + (text.length * (1 + compiled.programSize() / 4)) / 10);
    return compiled.matcher(text).find();
  }
}

/** A class, what is escaped, a repetition, or any other character. A class that does not end goes up to the end. */
const part = /\[\^?\]?(?:\\.|[^\]\\])*\]?|\\.|\{(\d{1,4})(?:,(\d{0,4}))?\}|./gs;

/** `\p{Greek}` is made of its ranges once, however often it is repeated. */
const weightOfUnicodeClass = 100;

/** Where counting ends: no budget has so much. */
const heaviest = 1e9;

/** About how many instructions a pattern becomes: its characters, each as often as it is repeated. */
function weightOf(pattern: string): number {
  const unicodeClasses = pattern.match(/\\p/gi)?.length ?? 0;
  /** What is in the groups that are open, outermost first. */
  const groups = [unicodeClasses * weightOfUnicodeClass];
  let last = 0;
  for (const [text, least, most] of pattern.matchAll(part)) {
    const within = groups.length - 1;
    if (text === "(") {
      groups.push(0);
      last = 0;
      continue;
    }
    if (text === ")" && within > 0) last = groups.pop() as number;
    else if (least !== undefined) last = Math.min(last * (Math.max(Number(least), Number(most || 0), 1) - 1), heaviest);
    else last = 1;
    groups[groups.length - 1] = (groups.at(-1) as number) + last;
  }
  return groups.reduce((sum, weight) => sum + weight);
}
