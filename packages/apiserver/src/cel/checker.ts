/**
 * Type checker: infers the type of an expression and reports type errors.
 * Source: cel-go v0.9 checker/checker.go, checker/errors.go
 */
import { accumulator, type Call, type Expression, type Fold, qualifiedName, type Select } from "./ast.ts";
import { functions, type Overload, typeNames } from "./declarations.ts";
import type { Issue } from "./issues.ts";
import {
  bool,
  bytes,
  double,
  dyn,
  errorType,
  formatProto,
  formatType,
  int,
  isSameType,
  listOf,
  mapOf,
  nullType,
  parameter,
  string,
  type Type,
  TypeTooLarge,
  uint,
  unknown,
} from "./types.ts";
import { mostGeneral, renamed, Substitutions } from "./unification.ts";
import { typeOf } from "./values.ts";

/** The inferred type, which is only meaningful when there are no issues. */
interface Checked {
  readonly type: Type;
  readonly issues: readonly Issue[];
}

/** Never throws: expressions whose types are too large are reported as an issue. @param variables types by variable name */
export function check(expression: Expression, variables: ReadonlyMap<string, Type>): Checked {
  const checker = new Checker(variables);
  try {
    const type = checker.resolved(checker.check(expression));
    return { type, issues: checker.issues };
  } catch (err) {
    if (!(err instanceof TypeTooLarge)) throw err;
    return { type: errorType, issues: [{ at: undefined, message: "the types of the expression are too large" }] };
  }
}

interface Scope {
  readonly name: string;
  readonly type: Type;
  readonly outer: Scope | undefined;
}

const constants: Readonly<Record<string, Type>> = { bool, int, uint, double, string, bytes, null_type: nullType };

class Checker {
  readonly issues: Issue[] = [];
  readonly #variables: ReadonlyMap<string, Type>;
  readonly #substitutions = new Substitutions();
  #scope: Scope | undefined;
  #parameters = 0;

  constructor(variables: ReadonlyMap<string, Type>) {
    this.#variables = variables;
  }

  resolved(type: Type): Type {
    return this.#substitutions.apply(type, dyn);
  }

  check(expression: Expression): Type {
    switch (expression.kind) {
      case "constant":
        return constants[typeOf(expression.value)]!;
      case "name":
        return this.#lookup(expression.name) ?? this.#undeclared(expression.at, expression.name);
      case "select":
        return this.#select(expression);
      case "call":
        return this.#call(expression);
      case "list": {
        let item: Type | undefined;
        for (const part of expression.items) item = this.#join(item, this.check(part));
        return listOf(item ?? this.#newParameter());
      }
      case "map": {
        let key: Type | undefined;
        let value: Type | undefined;
        for (const entry of expression.entries) {
          key = this.#join(key, this.check(entry.key));
          value = this.#join(value, this.check(entry.value));
        }
        return mapOf(key ?? this.#newParameter(), value ?? this.#newParameter());
      }
      case "message": {
        // No message types are declared, so every message literal is an error.
        const type = this.#lookup(expression.type);
        if (type === undefined) return this.#undeclared(expression.at, expression.type);
        const of = type.kind === "type" ? (type.of ?? unknown) : type;
        const fault = type.kind === "type" ? "is not a message type" : "is not a type";
        return this.#report(expression.at, `'${formatType(of)}' ${fault}`);
      }
      case "fold":
        return this.#fold(expression);
    }
  }

  #report(at: number, message: string, type = errorType): Type {
    this.issues.push({ at, message });
    return type;
  }

  /** Formats the message lazily: formatted types can be long, and only a part of the issues is shown. */
  #reportTypes(at: number, message: () => string): Type {
    this.issues.push({
      at,
      get message() {
        return message();
      },
    });
    return errorType;
  }

  #undeclared(at: number, name: string, type = errorType): Type {
    return this.#report(at, `undeclared reference to '${name}' (in container '')`, type);
  }

  #newParameter(): Type {
    return parameter(`_var${this.#parameters++}`);
  }

  #lookup(name: string): Type | undefined {
    const plain = name.startsWith(".") ? name.slice(1) : name;
    for (let scope = name === plain ? this.#scope : undefined; scope !== undefined; scope = scope.outer)
      if (scope.name === plain) return scope.type;
    return this.#variables.get(plain) ?? typeNames.get(plain);
  }

  #select(select: Select): Type {
    const { operand, field, at, isTest } = select;
    const named = isTest ? undefined : this.#lookup(qualifiedName(select) ?? "");
    if (named !== undefined) return named;
    const type = this.#substitutions.apply(this.check(operand));
    const found = this.#field(type, field, at);
    return isTest ? bool : this.#substitutions.apply(found);
  }

  #field(type: Type, field: string, at: number): Type {
    switch (type.kind) {
      case "map":
        return type.value;
      case "object":
        return type.field(field) ?? this.#report(at, `undefined field '${field}'`);
      case "parameter":
        this.#substitutions.isAssignable(dyn, type);
        return dyn;
      case "dyn":
      case "error":
        return dyn;
      default:
        return this.#reportTypes(at, () => `type '${formatProto(type)}' does not support field selection`);
    }
  }

  #call({ name, target, args, at }: Call): Type {
    const types = args.map((arg) => this.check(arg));
    if (target !== undefined) types.unshift(this.check(target));
    const overloads = functions.get(name.replace(/^\./, ""));
    if (overloads === undefined) return this.#undeclared(at, name, target === undefined ? errorType : unknown);
    return this.#resolve(overloads, types, target !== undefined) ?? this.#noOverload(at, name, types, target !== undefined);
  }

  #noOverload(at: number, name: string, types: readonly Type[], isMethod: boolean): Type {
    return this.#reportTypes(at, () => {
      const [first = "", ...others] = types.map(formatType);
      const signature = isMethod ? `${first}.(${others.join(", ")})` : `(${types.map(formatType).join(", ")})`;
      return `found no matching overload for '${name}' applied to '${signature}'`;
    });
  }

  /** Result type of the matching overloads; dyn when they differ, undefined when none matches. */
  #resolve(overloads: readonly Overload[], types: readonly Type[], isMethod: boolean): Type | undefined {
    let result: Type | undefined;
    for (const overload of overloads) {
      if (overload.isMethod !== isMethod) continue;
      const fresh = new Map(overload.parameters.map((name) => [name, this.#newParameter()]));
      const args = overload.args.map((arg) => renamed(arg, fresh));
      if (!this.#substitutions.areAssignable(types, args)) continue;
      const own = this.#substitutions.apply(renamed(overload.result, fresh));
      if (result === undefined) result = own;
      else if (result.kind !== "dyn" && !isSameType(own, result)) result = dyn;
    }
    return result;
  }

  #join(previous: Type | undefined, current: Type): Type {
    if (previous === undefined) return current;
    return this.#substitutions.isAssignable(previous, current) ? mostGeneral(previous, current) : dyn;
  }

  #fold({ variable, range, start, condition, step, result }: Fold): Type {
    const rangeType = this.#substitutions.apply(this.check(range));
    const startType = this.check(start);
    const outer = this.#scope;
    const within: Scope = { name: accumulator, type: startType, outer };
    this.#scope = { name: variable, type: this.#itemOf(rangeType, range.at), outer: within };
    this.#assert(condition, bool);
    this.#assert(step, startType);
    this.#scope = within;
    const type = this.#substitutions.apply(this.check(result));
    this.#scope = outer;
    return type;
  }

  #itemOf(range: Type, at: number): Type {
    switch (range.kind) {
      case "list":
        return range.item;
      case "map":
        return range.key;
      case "dyn":
      case "error":
      case "parameter":
        this.#substitutions.isAssignable(dyn, range);
        return dyn;
      default:
        return this.#reportTypes(
          at,
          () => `expression of type '${formatType(range)}' cannot be range of a comprehension (must be list, map, or dynamic)`,
        );
    }
  }

  #assert(expression: Expression, wanted: Type): void {
    const type = this.check(expression);
    if (this.#substitutions.isAssignable(wanted, type)) return;
    this.#reportTypes(expression.at, () => `expected type '${formatType(wanted)}' but found '${formatType(type)}'`);
  }
}
