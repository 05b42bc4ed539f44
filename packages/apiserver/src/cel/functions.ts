/**
 * Implementations of functions and operators, except those with lazy arguments (`&&`, `||`, `?:`), which are in the
 * interpreter. Argument types are checked again here, because the checker lets dynamically typed arguments through.
 * Source: cel-go v0.9 interpreter/functions/standard.go
 */
import type { Call } from "./ast.ts";
import type { Budget } from "./budget.ts";
import { conversions, convert } from "./conversions.ts";
import { binaryOperators, compare, negate, operate, orders } from "./operators.ts";
import type { PatternCache } from "./patterns.ts";
import { callTextMethod, joinTexts, textMethods } from "./texts.ts";
import { partOfTime, partsOfDurations, partsOfTimes } from "./times.ts";
import {
  contains,
  Duration,
  equal,
  Failure,
  List,
  Mapping,
  noOverload,
  Timestamp,
  TypeName,
  typeOf,
  type Value,
} from "./values.ts";

/** None of the arguments is a Failure. */
type Implementation = (args: readonly Value[], budget: Budget, call: Call, patterns: PatternCache) => Value;

type OfTwo = (a: Value, b: Value, budget: Budget) => Value;
const ofOne =
  (run: (value: Value, budget: Budget) => Value): Implementation =>
  (args, budget) =>
    run(args[0]!, budget);
const ofTwo =
  (run: OfTwo): Implementation =>
  (args, budget) =>
    run(args[0]!, args[1]!, budget);

const implementations: ReadonlyMap<string, Implementation> = new Map<string, Implementation>([
  ...binaryOperators.map((name) => [name, ofTwo((a, b, budget) => operate(name, a, b, budget))] as const),
  ...orders.map((name) => [name, ofTwo((a, b, budget) => compare(name, a, b, budget))] as const),
  ...conversions.map((name) => [name, ofOne((value, budget) => convert(name, value, budget))] as const),
  // Cast: a tuple, which `map` takes for a list.
  ...Object.keys(partsOfTimes).map((name) => [name, (args, budget) => timePart(name, args, budget)] as [string, Implementation]),
  // Cast: a tuple, which `map` takes for a list.
  ...textMethods.map((name) => [name, (args, budget) => callTextMethod(name, args, budget)] as [string, Implementation]),
  ["matches", matches],
  ["join", ([list, separator = ""], budget) => joinTexts(list!, separator, budget)],
  ["_==_", ofTwo(equal)],
  ["_!=_", ofTwo(differ)],
  ["!_", ofOne((value) => (typeof value === "boolean" ? !value : noOverload("!_")))],
  ["-_", ofOne(negate)],
  ["_[_]", ofTwo(index)],
  ["@in", ofTwo(membership)],
  ["size", ofOne(sizeOf)],
  ["type", ofOne((value) => new TypeName(value instanceof List ? "list" : value instanceof Mapping ? "map" : typeOf(value)))],
  ["dyn", ofOne((value) => value)],
]);

/** @param args the receiver of a method comes first; none is a Failure */
export function callFunction(call: Call, args: readonly Value[], budget: Budget, patterns: PatternCache): Value {
  const run = implementations.get(call.name) ?? implementations.get(call.name.replace(/^\./, ""));
  if (run === undefined) throw new Error(`the function ${call.name} is declared but not implemented`);
  return run(args, budget, call, patterns);
}

function differ(a: Value, b: Value, budget: Budget): Value {
  const isEqual = equal(a, b, budget);
  return isEqual instanceof Failure ? isEqual : !isEqual;
}

/** The value of a map key or list index; a Failure when it is absent or out of range. */
export function index(value: Value, key: Value, budget: Budget): Value {
  if (value instanceof Mapping) return value.find(key, budget) ?? new Failure(`no such key: ${keyText(key)}`);
  if (!(value instanceof List)) return noOverload();
  if (typeof key !== "bigint") return new Failure(`unsupported index type '${typeOf(key)}' in list`);
  return key >= 0n && key < BigInt(value.size) ? value.at(Number(key)) : value.outOfRange(key);
}

function keyText(key: Value): string {
  // Cast: null or an object of values.ts, of which some have a `value`; the others give undefined.
  return typeof key === "object" ? String((key as { value?: unknown } | null)?.value) : String(key);
}

function membership(value: Value, within: Value, budget: Budget): Value {
  if (within instanceof List) return contains(within, value, budget);
  if (!(within instanceof Mapping)) return noOverload();
  const found = within.find(value, budget);
  return found instanceof Failure ? found : found !== undefined;
}

function sizeOf(value: Value, budget: Budget): Value {
  if (value instanceof List || value instanceof Mapping) return BigInt(value.size);
  if (value instanceof Uint8Array) return BigInt(value.length);
  if (typeof value !== "string") return noOverload("size");
  budget.spendOnText(value.length);
  return BigInt([...value].length);
}

function matches([text, pattern]: readonly Value[], budget: Budget, call: Call, patterns: PatternCache): Value {
  if (typeof text !== "string") return noOverload("matches");
  return typeof pattern === "string" ? patterns.matches(text, pattern, call, budget) : noOverload();
}

/** Looking up a time zone by name is expensive. */
const zoneSteps = 1000;

function timePart(name: string, [value, zone]: readonly Value[], budget: Budget): Value {
  if (value instanceof Duration && zone === undefined) {
    const unit = Object.hasOwn(partsOfDurations, name) ? partsOfDurations[name] : undefined;
    return unit === undefined ? noOverload() : value.nanos / unit;
  }
  if (!(value instanceof Timestamp)) return noOverload(value instanceof Duration ? undefined : name);
  if (zone !== undefined && typeof zone !== "string") return noOverload();
  if (zone !== undefined) budget.spend(zoneSteps + zone.length);
  return partOfTime(name, value, zone);
}
