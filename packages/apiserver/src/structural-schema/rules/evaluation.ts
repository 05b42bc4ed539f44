/**
 * Evaluates the validation rules of custom resources.
 * Source: apiextensions-apiserver pkg/apiserver/schema/cel/validation.go
 */

import { child, type FieldError, index, invalidValue, mapKey } from "@coxswain/apimachinery/objects/errors/field-error";
import { GoText, goUntyped } from "@coxswain/apimachinery/objects/errors/go-syntax";
import { isJsonObject } from "@coxswain/apimachinery/objects/meta/json-value";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { Budget, BudgetExceeded } from "../../cel/budget.ts";
import type { Program } from "../../cel/program.ts";
import { Failure, NoOverload, type Value } from "../../cel/values.ts";
import { additionalOf, anySchema, isEmbedded, itemsOf, mostLevels, type Schema } from "../schema.ts";
import { hasStructureThroughout } from "../structural.ts";
import { maxStepsPerObject, maxStepsPerRule } from "./cost-limits.ts";
import { type CompiledRule, compileInTurn, rulesOf, self } from "./rules.ts";
import { ruleValue } from "./values.ts";

/** A schema with rules on itself or below it. */
interface Node {
  readonly schema: Schema;
  readonly isResource: boolean;
  readonly rules: readonly CompiledRule[];
  readonly items: Node | undefined;
  readonly properties: ReadonlyMap<string, Node>;
  readonly additional: Node | undefined;
}

/** Evaluates all rules on an object; yields between rules and in their loops. */
export type RuleCheck = (object: KubeObject) => Steps<FieldError[]>;

/** @returns undefined for a schema without rules */
export function ruleCheckOf(schema: Schema | undefined): RuleCheck | undefined {
  const hasRules = schema !== undefined && anySchema(schema, (part) => rulesOf(part).length > 0);
  if (!hasRules || !hasStructureThroughout(schema)) return undefined;
  // Built on first use to keep server startup fast; the rules themselves are compiled in the background (compileAhead).
  let root: { readonly node: Node | undefined } | undefined;
  return function* (object) {
    root ??= { node: yield* nodeOf(schema, true, 0) };
    if (root.node === undefined) return [];
    const evaluation = new Evaluation();
    yield* evaluation.check(root.node, object, "");
    return evaluation.errors;
  };
}

function* nodeOf(schema: Schema, isResource: boolean, level: number): Steps<Node | undefined> {
  if (level > mostLevels) return undefined;
  const below = function* (part: Schema | undefined): Steps<Node | undefined> {
    return part && (yield* nodeOf(part, isEmbedded(part), level + 1));
  };
  const properties = new Map<string, Node>();
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const node = yield* below(property);
    if (node !== undefined) properties.set(name, node);
  }
  const rules: CompiledRule[] = [];
  for (const rule of compileInTurn(schema, isResource)) {
    rules.push(rule);
    yield;
  }
  const node: Node = {
    schema,
    isResource,
    rules,
    items: yield* below(itemsOf(schema)),
    properties,
    additional: yield* below(additionalOf(schema)),
  };
  const isEmpty = node.rules.length === 0 && !node.items && !node.additional && node.properties.size === 0;
  return isEmpty ? undefined : node;
}

/** The evaluation of one object. */
class Evaluation {
  readonly errors: FieldError[] = [];
  #left = maxStepsPerObject;

  /** @returns false when the budget is exhausted and no further rules are to be evaluated */
  *check(node: Node, value: unknown, path: string): Steps<boolean> {
    if (value === null || value === undefined) return true;
    if (!(yield* this.#checkRules(node, value, path))) return false;
    if (Array.isArray(value)) {
      const { items } = node;
      if (items === undefined) return true;
      for (const [i, item] of value.entries()) if (!(yield* this.check(items, item, index(path, i)))) return false;
      return true;
    }
    if (!isJsonObject(value)) return true;
    const { additional, properties } = node;
    const fields = Object.entries(value);
    if (additional)
      for (const [name, field] of fields) if (!(yield* this.check(additional, field, mapKey(path, name)))) return false;
    for (const [name, field] of fields) {
      const property = properties.get(name);
      if (property !== undefined && !(yield* this.check(property, field, child(path, name)))) return false;
    }
    return true;
  }

  *#checkRules({ schema, rules, isResource }: Node, value: unknown, path: string): Steps<boolean> {
    if (rules.length === 0) return true;
    const variables = new Map<string, Value>([[self, ruleValue(value, schema, isResource)]]);
    // The root has no path, which upstream formats as a nil pointer.
    const at = path === "" ? "<nil>" : path;
    const report = (text: string): void => {
      const shown = goUntyped(value);
      this.errors.push(invalidValue(at, shown, text));
      this.#left -= at.length + text.length + lengthOf(shown);
    };
    const outOfBudget = (text: string): false => {
      this.errors.push(invalidValue(at, schema.type ?? "object", text));
      return false;
    };
    for (const { rule, program } of rules) {
      if (program === undefined) continue;
      if (this.#left <= 0) return outOfBudget(objectOutOfBudget);
      if ("fault" in program) {
        report(`rule compile error: ${program.fault}`);
        continue;
      }
      const shown = (rule.message || rule.rule || "").trim();
      const result = yield* this.#evaluate(program, variables);
      yield;
      if (result === undefined) return outOfBudget(this.#left <= 0 ? objectOutOfBudget : ruleOutOfBudget(shown));
      if (result instanceof Failure) report(failureText(result, shown));
      else if (result !== true) report(rule.message || `failed rule: ${shown}`);
    }
    return true;
  }

  /** @returns undefined when the budget is exceeded */
  *#evaluate(program: Program, variables: ReadonlyMap<string, Value>): Steps<Value | undefined> {
    const budget = new Budget(Math.min(maxStepsPerRule, this.#left));
    const steps = budget.left;
    try {
      return yield* program.evaluate(variables, budget);
    } catch (err) {
      if (err instanceof BudgetExceeded) return undefined;
      throw err;
    } finally {
      this.#left -= steps - Math.max(budget.left, 0);
    }
  }
}

function lengthOf(shown: unknown): number {
  return shown instanceof GoText ? shown.text.length : String(shown).length;
}

const objectOutOfBudget = "validation failed due to running out of cost budget, no further validation rules will be run";

function ruleOutOfBudget(rule: string): string {
  return `'${new BudgetExceeded().message}': no further validation rules will be run due to call cost exceeds limit for rule: ${rule}`;
}

function failureText(failure: Failure, rule: string): string {
  const { message } = failure;
  return failure instanceof NoOverload
    ? `'${message}': call arguments did not match a supported operator, function or macro signature for rule: ${rule}`
    : `${message} evaluating rule: ${rule}`;
}
