/**
 * String methods. Indexes count code points, not bytes.
 * Source: cel-go v0.9 common/types/string.go, ext/strings.go
 */
import type { Budget } from "./budget.ts";
import { MadeList } from "./collections.ts";
import { Failure, List, noOverload, type Value } from "./values.ts";

/** `takes` has the JavaScript types of the arguments, one row for each overload. */
interface Method {
  readonly takes: readonly (readonly ("string" | "bigint")[])[];
  readonly run: (text: string, args: readonly never[], budget: Budget) => Value;
}

const outOfRange = (i: bigint): Failure => new Failure(`index out of range: ${i}`);
const isWithin = (i: bigint, last: number): boolean => i >= 0n && i <= BigInt(last);

function indexOf(text: string, [part, from = 0n]: readonly [string, bigint?]): Value {
  if (part === "") return from;
  const characters = [...text];
  if (text === "" && from === 0n) return outOfRange(0n);
  if (!isWithin(from, characters.length - 1)) return outOfRange(from);
  const skipped = characters.slice(0, Number(from)).join("").length;
  return placeOf(text, text.indexOf(part, skipped));
}

function lastIndexOf(text: string, [part, from]: readonly [string, bigint?]): Value {
  const characters = [...text];
  if (part === "") return from ?? BigInt(characters.length);
  const last = from ?? BigInt(characters.length - 1);
  if (!isWithin(last, characters.length - 1)) return outOfRange(last);
  return placeOf(text, text.lastIndexOf(part, characters.slice(0, Number(last)).join("").length));
}

const placeOf = (text: string, at: number): bigint => (at < 0 ? -1n : BigInt([...text.slice(0, at)].length));

function substring(text: string, [start, end]: readonly [bigint, bigint?]): Value {
  const characters = [...text];
  if (end !== undefined && start > end) return new Failure(`invalid substring range. start: ${start}, end: ${end}`);
  for (const place of [start, end ?? start]) if (!isWithin(place, characters.length)) return outOfRange(place);
  return characters.slice(Number(start), end === undefined ? undefined : Number(end)).join("");
}

/** An empty `old` matches between all characters. @param most maximum number of replacements; negative: unlimited */
function replace(text: string, [old, by, most = -1n]: readonly [string, string, bigint?], budget: Budget): Value {
  const parts = old === "" ? ["", ...text, ""] : text.split(old);
  const times = most < 0n || most > BigInt(parts.length - 1) ? parts.length - 1 : Number(most);
  budget.spendOnText(times * by.length);
  // For an empty `old`, the first match is before the first character and the last one after the last character.
  const head = parts.slice(0, times + 1);
  const tail = parts.slice(times + 1);
  return [head.join(by), ...tail].join(old);
}

function split(text: string, [separator, most = -1n]: readonly [string, bigint?], budget: Budget): Value {
  if (most === 0n) return new MadeList([]);
  const parts = separator === "" ? [...text] : text.split(separator);
  budget.spend(parts.length);
  const count = most < 0n || most > BigInt(parts.length) ? parts.length : Number(most);
  return new MadeList(count === parts.length ? parts : [...parts.slice(0, count - 1), parts.slice(count - 1).join(separator)]);
}

function charAt(text: string, [place]: readonly [bigint]): Value {
  const characters = [...text];
  return isWithin(place, characters.length) ? (characters[Number(place)] ?? "") : outOfRange(place);
}

/** White space as defined by Go's unicode.IsSpace. */
const edges = /^[\t\n\v\f\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/;
const trimStart = (text: string): string => text.replace(edges, "");
const reversed = (text: string): string => [...text].reverse().join("");

const method = <Args extends readonly unknown[]>(
  takes: Method["takes"],
  run: (text: string, args: Args, budget: Budget) => Value,
): Method => ({ takes, run: run as unknown as Method["run"] }); // cast: `callTextMethod` runs it only with arguments that `takes` names

const one = [["string"]] as const;
const none = [[]] as const;
const placed = [["string"], ["string", "bigint"]] as const;

const methods: Readonly<Record<string, Method>> = {
  contains: method(one, (text, [part]: readonly [string]) => text.includes(part)),
  startsWith: method(one, (text, [part]: readonly [string]) => text.startsWith(part)),
  endsWith: method(one, (text, [part]: readonly [string]) => text.endsWith(part)),
  charAt: method([["bigint"]], charAt),
  indexOf: method(placed, indexOf),
  lastIndexOf: method(placed, lastIndexOf),
  lowerAscii: method(none, (text) => text.replace(/[A-Z]+/g, (part) => part.toLowerCase())),
  upperAscii: method(none, (text) => text.replace(/[a-z]+/g, (part) => part.toUpperCase())),
  replace: method(
    [
      ["string", "string"],
      ["string", "string", "bigint"],
    ],
    replace,
  ),
  split: method(placed, split),
  substring: method([["bigint"], ["bigint", "bigint"]], substring),
  trim: method(none, (text) => reversed(trimStart(reversed(trimStart(text))))),
};

export const textMethods: readonly string[] = Object.keys(methods);

/** Methods whose "no such overload" error names the method; those of ext/strings.go do not. */
const own: ReadonlySet<string> = new Set(["contains", "startsWith", "endsWith"]);

/** @param name one of `textMethods` @returns a Failure for unsuitable arguments */
export function callTextMethod(name: string, [text, ...args]: readonly Value[], budget: Budget): Value {
  if (typeof text !== "string") return noOverload(own.has(name) ? name : undefined);
  const { takes, run } = methods[name]!;
  const fits = takes.some((types) => types.length === args.length && types.every((type, i) => typeof args[i] === type));
  if (!fits) return noOverload();
  budget.spendOnText(text.length);
  const [part] = args;
  // Substring search takes, in the worst case, time proportional to the product of both lengths.
  if (typeof part === "string") budget.spend((text.length * part.length) / 100);
  return run(text, args as never[], budget); // cast: `fits`: the arguments have the types that `takes` names
}

/** `list.join(separator)`. @returns a Failure when an element is not a string or the budget is used up */
export function joinTexts(list: Value, separator: Value, budget: Budget): Value {
  if (!(list instanceof List) || typeof separator !== "string") return noOverload();
  const parts: string[] = [];
  for (let i = 0; i < list.size; i++) {
    const part = list.at(i);
    if (typeof part !== "string") return part instanceof Failure ? part : noOverload();
    budget.spendOnText(part.length, separator.length);
    parts.push(part);
  }
  return parts.join(separator);
}
