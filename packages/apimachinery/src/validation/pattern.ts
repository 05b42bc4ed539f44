/**
 * Regular expressions of users, in RE2's syntax as Go has it, matched in time that is proportional to program size times
 * text length. Both factors come from users, so that both are bounded here: compiling and one match take less than about
 * a tenth of a second each.
 * Source: Go's regexp package; https://github.com/google/re2/wiki/Syntax
 */
import { RE2JS } from "re2js";

/** Instructions that a pattern may become; about 5 µs each to compile. Repetitions count as often as they repeat. */
export const mostInstructions = 10_000;

/** Instructions times characters of one match; 5 to 40 ns each. */
export const mostMatchSteps = 3_000_000;

/** Up to this size the engine's automaton is fast; above it, it is built again and again, and costs more than it saves. */
const automatonInstructions = 100;

export class Pattern {
  readonly source: string;
  /** Of the compiled program. */
  readonly instructions: number;
  readonly #compiled: RE2JS;

  /** @throws PatternError for syntax that is not RE2's, and for patterns of more than `mostInstructions` */
  constructor(source: string) {
    if (instructionsOf(source) > mostInstructions) throw new PatternError(tooLarge);
    this.source = source;
    try {
      this.#compiled = RE2JS.compile(source);
    } catch (err) {
      throw new PatternError((err as Error).message, { cause: err });
    }
    this.instructions = this.#compiled.programSize();
  }

  /** Whether matches mostly take the time of the text alone. */
  get isFast(): boolean {
    return this.instructions <= automatonInstructions;
  }

  /** What a match with a text of this length costs at most: instructions times characters. */
  steps(textLength: number): number {
    return this.instructions * textLength;
  }

  /** Whether the text is short enough to be matched within `mostMatchSteps`. */
  canMatch(text: string): boolean {
    return this.steps(text.length) <= mostMatchSteps;
  }

  /** Whether the pattern matches anywhere in the text, whatever it costs: `canMatch` is to be asked before. */
  matches(text: string): boolean {
    return this.isFast ? this.#compiled.test(text) : this.#compiled.matcher(text).find();
  }
}

/** A text that is no pattern, or one that is too large. */
export class PatternError extends Error {}

const tooLarge = `the expression is too large: at most ${mostInstructions} instructions are allowed, repetitions written out`;

/** A class, what is escaped, a repetition, or any other character. A class that does not end goes up to the end. */
const part = /\[\^?\]?(?:\\.|[^\]\\])*\]?|\\.|\{(\d{1,4})(?:,(\d{0,4}))?\}|./gs;

/** `\p{Greek}` is made of its ranges once, however often it is repeated: about as much work as this many instructions. */
const unicodeClassInstructions = 30;

/** Where counting ends. */
const heaviest = 1e9;

/**
 * About how many instructions a pattern becomes: its characters, each as often as it is repeated; at least its length,
 * which has to be parsed. Known before the pattern is compiled, whose cost it is.
 */
export function instructionsOf(pattern: string): number {
  if (pattern.length > mostInstructions) return pattern.length;
  const unicodeClasses = pattern.match(/\\p/gi)?.length ?? 0;
  /** What is in the groups that are open, outermost first. */
  const groups = [unicodeClasses * unicodeClassInstructions];
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
  return Math.max(
    pattern.length,
    groups.reduce((sum, weight) => sum + weight),
  );
}
