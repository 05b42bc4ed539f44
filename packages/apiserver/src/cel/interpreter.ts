/**
 * Evaluates type-checked expressions. Functions check the types of dynamically typed arguments themselves.
 * Source: cel-go v0.9 interpreter/interpretable.go, interpreter/attributes.go
 */
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { accumulator, type Call, type Expression, type Fold, partsOf, type Select } from "./ast.ts";
import type { Budget } from "./budget.ts";
import { MadeList, MadeMap } from "./collections.ts";
import { typeNames } from "./declarations.ts";
import { callFunction, index } from "./functions.ts";
import type { PatternCache } from "./patterns.ts";
import { contains, Failure, List, Mapping, noOverload, TypeName, typeOf, type Value } from "./values.ts";

/** Variables of the enclosing folds, innermost first. */
interface Scope {
  readonly name: string;
  readonly value: Value;
  readonly outer: Scope | undefined;
}

/**
 * Tree-walking evaluator for one set of variables and one budget. Only folds can take long, so that what contains none is
 * evaluated at once.
 */
export class Interpreter {
  readonly #variables: ReadonlyMap<string, Value>;
  readonly #budget: Budget;
  readonly #patterns: PatternCache;
  readonly #withFolds: ReadonlySet<Expression>;

  /**
   * @param patterns may be shared by several evaluations
   * @param withFolds the expressions that are or contain a fold
   */
  constructor(variables: ReadonlyMap<string, Value>, budget: Budget, patterns: PatternCache, withFolds: ReadonlySet<Expression>) {
    this.#variables = variables;
    this.#budget = budget;
    this.#patterns = patterns;
    this.#withFolds = withFolds;
  }

  /** @returns the value; a Failure for an error of the language @throws BudgetExceeded */
  *evaluate(expression: Expression, scope?: Scope): Steps<Value> {
    if (!this.#withFolds.has(expression)) return this.#evaluate(expression, scope);
    this.#budget.spend();
    if (expression.kind === "fold") return yield* this.#fold(expression, scope);
    if (expression.kind === "select") return this.#selected(expression, yield* this.evaluate(expression.operand, scope));
    const name = expression.kind === "call" ? expression.name : "";
    const parts = partsOf(expression);
    if (name === "_&&_" || name === "_||_") {
      const first = yield* this.evaluate(parts[0]!, scope);
      const isDecided = first === (name === "_||_");
      return isDecided ? first : joined(first, yield* this.evaluate(parts[1]!, scope), name === "_||_");
    }
    if (name === "_?_:_") {
      const condition = yield* this.evaluate(parts[0]!, scope);
      if (typeof condition !== "boolean") return condition instanceof Failure ? condition : noOverload();
      return yield* this.evaluate(parts[condition ? 1 : 2]!, scope);
    }
    const values: Value[] = [];
    for (const part of parts) {
      const value = yield* this.evaluate(part, scope);
      if (value instanceof Failure && name !== notStrictlyFalse) return value;
      values.push(value);
    }
    return this.#combined(expression, values);
  }

  *#fold({ variable, range, start, condition, step, result }: Fold, scope: Scope | undefined): Steps<Value> {
    const items = yield* this.evaluate(range, scope);
    const iterable = items instanceof List ? itemsOf(items) : items instanceof Mapping ? items.keys() : undefined;
    if (iterable === undefined)
      return items instanceof Failure ? items : new Failure(`got '${goTypeOf(items)}', expected iterable type`);
    const hasFold = this.#withFolds.has(step); // a generator for each item of an innermost fold would cost more than the item
    let soFar: Scope = { name: accumulator, value: yield* this.evaluate(start, scope), outer: scope };
    for (const item of iterable) {
      const within: Scope = { name: variable, value: item, outer: soFar };
      if (this.#evaluate(condition, within) === false) break; // the macros' conditions contain no fold
      const value: Value = hasFold ? yield* this.evaluate(step, within) : this.#evaluate(step, within);
      soFar = { name: accumulator, value, outer: scope };
      if (this.#budget.isPauseDue()) yield;
    }
    return yield* this.evaluate(result, soFar);
  }

  /** For an expression without folds. */
  #evaluate(expression: Expression, scope: Scope | undefined): Value {
    this.#budget.spend();
    switch (expression.kind) {
      case "constant":
        return expression.value;
      case "name":
        return this.#named(expression.name, scope);
      case "select":
        return typeNamed(expression) ?? this.#selected(expression, this.#evaluate(expression.operand, scope));
      case "call":
        return this.#call(expression, scope);
      default:
        return this.#fromAll(expression, scope);
    }
  }

  /** A leading dot skips the variables of folds. */
  #named(name: string, scope: Scope | undefined): Value {
    const plain = name.startsWith(".") ? name.slice(1) : name;
    for (let inner = plain === name ? scope : undefined; inner !== undefined; inner = inner.outer)
      if (inner.name === plain) return inner.value;
    const value = this.#variables.get(plain);
    if (value !== undefined) return value;
    return typeNames.has(plain) ? new TypeName(plain) : new Failure(`no such attribute: ${plain}`);
  }

  #selected({ field, isTest }: Select, value: Value): Value {
    if (value instanceof Failure) return value;
    if (!isTest) return index(value, field, this.#budget);
    if (value instanceof List) return contains(value, field, this.#budget);
    if (!(value instanceof Mapping)) return new Failure("invalid type for field selection.");
    const found = value.find(field, this.#budget);
    return found instanceof Failure ? found : found !== undefined;
  }

  #call(call: Call, scope: Scope | undefined): Value {
    const [a, b, c] = call.args;
    switch (call.name) {
      case "_&&_":
      case "_||_": {
        const decisive = call.name === "_||_";
        const first = this.#evaluate(a!, scope);
        return first === decisive ? decisive : joined(first, this.#evaluate(b!, scope), decisive);
      }
      case "_?_:_": {
        const condition = this.#evaluate(a!, scope);
        if (typeof condition !== "boolean") return condition instanceof Failure ? condition : noOverload();
        return this.#evaluate((condition ? b : c)!, scope);
      }
      case notStrictlyFalse:
        return this.#combined(call, [this.#evaluate(a!, scope)]);
      default:
        return this.#fromAll(call, scope);
    }
  }

  /** Evaluates all parts; returns the first Failure. */
  #fromAll(expression: Expression, scope: Scope | undefined): Value {
    const values: Value[] = [];
    for (const part of partsOf(expression)) {
      const value = this.#evaluate(part, scope);
      if (value instanceof Failure) return value;
      values.push(value);
    }
    return this.#combined(expression, values);
  }

  /** @param values of the expression's parts */
  #combined(expression: Expression, values: Value[]): Value {
    switch (expression.kind) {
      case "list":
        return new MadeList(values);
      case "map":
        return MadeMap.of(
          expression.entries.map((_entry, i) => [values[2 * i]!, values[2 * i + 1]!]),
          this.#budget,
        );
      case "call":
        if (expression.name === notStrictlyFalse) return typeof values[0] === "boolean" ? values[0] : true;
        return callFunction(expression, values, this.#budget, this.#patterns);
      default:
        throw new Error(`a ${expression.kind} reached the interpreter; the checker rejects messages, and folds run in steps`);
    }
  }
}

/** In the conditions of `all` and `exists`: they end with the first decisive value, not with an error. */
const notStrictlyFalse = "@not_strictly_false";

/** Either operand of `&&` and `||` can decide the result, even when the other one is an error. @param decisive true for `||` */
function joined(first: Value, second: Value, decisive: boolean): Value {
  if (second === decisive) return decisive;
  if (typeof first === "boolean" && typeof second === "boolean") return !decisive;
  if (first instanceof Failure) return first;
  return second instanceof Failure ? second : noOverload();
}

/** The expressions of the tree that are or contain a fold. */
export function foldsIn(expression: Expression, found = new Set<Expression>()): ReadonlySet<Expression> {
  const parts = partsOf(expression);
  for (const part of parts) foldsIn(part, found);
  if (expression.kind === "fold" || parts.some((part) => found.has(part))) found.add(expression);
  return found;
}

/** `google.protobuf.Timestamp` as a type name, also where a fold variable is named `google`: the checker resolves it so. */
function typeNamed({ operand, field }: Select): TypeName | undefined {
  if (operand.kind !== "select" || operand.operand.kind !== "name" || operand.operand.name !== "google") return undefined;
  const name = `google.${operand.field}.${field}`;
  return typeNames.has(name) ? new TypeName(name) : undefined;
}

function* itemsOf(list: List): Iterable<Value> {
  for (let i = 0; i < list.size; i++) yield list.at(i);
}

const goTypes: Readonly<Record<string, string>> = {
  null_type: "Null",
  "google.protobuf.Duration": "Duration",
  "google.protobuf.Timestamp": "Timestamp",
};

/** Name of the Go type in cel-go, for error texts: `types.String`. */
function goTypeOf(value: Value): string {
  const type = typeOf(value);
  return `types.${goTypes[type] ?? type.slice(0, 1).toUpperCase() + type.slice(1)}`;
}
