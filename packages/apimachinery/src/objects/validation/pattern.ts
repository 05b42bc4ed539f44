/**
 * User-supplied regular expressions in RE2 syntax, as in Go, matched in time proportional to program size × text length.
 * Both factors come from users and are bounded here: compiling and a single match take less than about 100 ms each.
 * Source: Go's regexp package; https://github.com/google/re2/wiki/Syntax
 */

import { RE2JS } from "re2js";
import { messageOf } from "../errors/message.ts";

/** Maximum number of instructions of a pattern, about 5 µs each to compile. Repetitions count as often as they repeat. */
export const mostInstructions = 10_000;

/** Maximum of instructions × characters for one match; 5 to 40 ns each. */
export const mostMatchSteps = 3_000_000;

/** Up to this size the engine's automaton is fast; larger ones are rebuilt repeatedly, which costs more than it saves. */
const automatonInstructions = 100;

/**
 * Up to this many instructions × characters the automaton is used. It may need a new state for each character, at 5 µs; a longer
 * text is matched state by state, at a cost that does not depend on the pattern's kind.
 */
const mostAutomatonSteps = 200_000;

/** A compiled pattern. */
export class Pattern {
  readonly source: string;
  /** Size of the compiled program. */
  readonly instructions: number;
  readonly #compiled: RE2JS;

  /** @throws PatternError for invalid RE2 syntax, and for patterns with more than `mostInstructions` */
  constructor(source: string) {
    if (instructionsOf(source) > mostInstructions) throw new PatternError(tooLarge);
    this.source = source;
    try {
      this.#compiled = RE2JS.compile(source);
    } catch (err) {
      throw new PatternError(messageOf(err), { cause: err });
    }
    this.instructions = this.#compiled.programSize();
  }

  /** True when the engine's automaton matches a text of this length. */
  isFast(textLength: number): boolean {
    return this.instructions <= automatonInstructions && this.steps(textLength) <= mostAutomatonSteps;
  }

  /** Upper bound of the cost of a match: instructions × characters. */
  steps(textLength: number): number {
    return this.instructions * textLength;
  }

  /** True when a match stays within `mostMatchSteps`. */
  canMatch(text: string): boolean {
    return this.steps(text.length) <= mostMatchSteps;
  }

  /** True when the pattern matches anywhere in the text. Does not limit the cost; callers check `canMatch` first. */
  matches(text: string): boolean {
    return this.isFast(text.length) ? this.#compiled.test(text) : this.#compiled.matcher(text).find();
  }
}

/** The pattern is invalid or too large. */
export class PatternError extends Error {}

const tooLarge = `the expression is too large: at most ${mostInstructions} instructions are allowed, repetitions written out`;

/** A character class, an escape sequence, a repetition, or any other character. An unterminated class extends to the end. */
const part = /\[\^?\]?(?:\\.|[^\]\\])*\]?|\\.|\{(\d{1,4})(?:,(\d{0,4}))?\}|./gs;

/** Cost of a Unicode class such as `\p{Greek}` in instructions. It is compiled once, however often it is repeated. */
const unicodeClassInstructions = 30;

/** Counts are capped at this value. */
const heaviest = 1e9;

/**
 * Estimates the number of instructions of a pattern without compiling it: its characters, multiplied by their
 * repetitions; at least its length.
 */
export function instructionsOf(pattern: string): number {
  if (pattern.length > mostInstructions) return pattern.length;
  const unicodeClasses = pattern.match(/\\p/gi)?.length ?? 0;
  /** Cost of the open groups, outermost first. */
  const groups = [unicodeClasses * unicodeClassInstructions];
  let last = 0;
  for (const [text, least, most] of pattern.matchAll(part)) {
    const within = groups.length - 1;
    if (text === "(") {
      groups.push(0);
      last = 0;
      continue;
    }
    if (text === ")" && within > 0) last = groups.pop()!;
    else if (least !== undefined) last = Math.min(last * (Math.max(Number(least), Number(most || 0), 1) - 1), heaviest);
    else last = 1;
    groups[groups.length - 1] = groups.at(-1)! + last;
  }
  return Math.max(
    pattern.length,
    groups.reduce((sum, weight) => sum + weight),
  );
}
