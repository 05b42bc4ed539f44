/**
 * Evaluates type-checked expressions. Functions check the types of dynamically typed arguments themselves.
 * Source: cel-go v0.9 interpreter/interpretable.go, interpreter/attributes.go
 */
import { accumulator, type Call, type Expression, type Fold, type Select } from "./ast.ts";
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

/** Tree-walking evaluator for one set of variables and one budget. */
export class Interpreter {
  readonly #variables: ReadonlyMap<string, Value>;
  readonly #budget: Budget;
  readonly #patterns: PatternCache;

  /** @param patterns may be shared by several evaluations */
  constructor(variables: ReadonlyMap<string, Value>, budget: Budget, patterns: PatternCache) {
    this.#variables = variables;
    this.#budget = budget;
    this.#patterns = patterns;
  }

  /** @returns the value; a Failure for an error of the language @throws BudgetExceeded */
  evaluate(expression: Expression, scope?: Scope): Value {
    this.#budget.spend();
    switch (expression.kind) {
      case "constant":
        return expression.value;
      case "name":
        return this.#named(expression.name, scope);
      case "select":
        return this.#select(expression, scope);
      case "call":
        return this.#call(expression, scope);
      case "list":
        return this.#all(expression.items, scope, (items) => new MadeList(items));
      case "map":
        return this.#all(
          expression.entries.flatMap(({ key, value }) => [key, value]),
          scope,
          (values) =>
            MadeMap.of(
              expression.entries.map((_entry, i) => [values[2 * i]!, values[2 * i + 1]!]),
              this.#budget,
            ),
        );
      case "fold":
        return this.#fold(expression, scope);
      case "message":
        throw new Error("a message construction reached the interpreter; the checker rejects them");
    }
  }

  /** Evaluates all parts; returns the first Failure. */
  #all(parts: readonly Expression[], scope: Scope | undefined, make: (values: Value[]) => Value): Value {
    const values: Value[] = [];
    for (const part of parts) {
      const value = this.evaluate(part, scope);
      if (value instanceof Failure) return value;
      values.push(value);
    }
    return make(values);
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

  #select(select: Select, scope: Scope | undefined): Value {
    const { operand, field, isTest } = select;
    const type = typeNamed(select, scope);
    if (type !== undefined) return type;
    const value = this.evaluate(operand, scope);
    if (value instanceof Failure) return value;
    if (!isTest) return index(value, field, this.#budget);
    if (value instanceof List) return contains(value, field, this.#budget);
    if (!(value instanceof Mapping)) return new Failure("invalid type for field selection.");
    const found = value.find(field, this.#budget);
    return found instanceof Failure ? found : found !== undefined;
  }

  #call(call: Call, scope: Scope | undefined): Value {
    const { name, target, args } = call;
    switch (name) {
      case "_&&_":
        return this.#logical(args, scope, false);
      case "_||_":
        return this.#logical(args, scope, true);
      case "_?_:_":
        return this.#conditional(args, scope);
      case "@not_strictly_false": {
        const value = this.evaluate(args[0]!, scope);
        return typeof value === "boolean" ? value : true;
      }
    }
    const all = target === undefined ? args : [target, ...args];
    return this.#all(all, scope, (values) => callFunction(call, values, this.#budget, this.#patterns));
  }

  /** Either operand can decide the result, even when the other one is an error. @param decisive true for `||` */
  #logical([left, right]: readonly Expression[], scope: Scope | undefined, decisive: boolean): Value {
    const first = this.evaluate(left!, scope);
    if (first === decisive) return decisive;
    const second = this.evaluate(right!, scope);
    if (second === decisive) return decisive;
    if (typeof first === "boolean" && typeof second === "boolean") return !decisive;
    if (first instanceof Failure) return first;
    return second instanceof Failure ? second : noOverload();
  }

  #conditional([condition, yes, no]: readonly Expression[], scope: Scope | undefined): Value {
    const value = this.evaluate(condition!, scope);
    if (typeof value !== "boolean") return value instanceof Failure ? value : noOverload();
    return this.evaluate((value ? yes : no)!, scope);
  }

  #fold({ variable, range, start, condition, step, result }: Fold, scope: Scope | undefined): Value {
    const items = this.evaluate(range, scope);
    const iterable = items instanceof List ? itemsOf(items) : items instanceof Mapping ? items.keys() : undefined;
    if (iterable === undefined)
      return items instanceof Failure ? items : new Failure(`got '${goTypeOf(items)}', expected iterable type`);
    let soFar: Scope = { name: accumulator, value: this.evaluate(start, scope), outer: scope };
    for (const value of iterable) {
      const within: Scope = { name: variable, value, outer: soFar };
      if (this.evaluate(condition, within) === false) break;
      soFar = { ...soFar, value: this.evaluate(step, within) };
    }
    return this.evaluate(result, soFar);
  }
}

/** `google.protobuf.Timestamp` as a type name, unless a fold variable is named `google`. */
function typeNamed({ operand, field }: Select, scope: Scope | undefined): TypeName | undefined {
  if (operand.kind !== "select" || operand.operand.kind !== "name" || operand.operand.name !== "google") return undefined;
  const name = `google.${operand.field}.${field}`;
  for (let inner = scope; inner !== undefined; inner = inner.outer) if (inner.name === "google") return undefined;
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
