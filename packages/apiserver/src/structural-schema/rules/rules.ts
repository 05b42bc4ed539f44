/**
 * `x-kubernetes-validations`: validation and compilation of the CEL rules of a schema.
 * Source: apiextensions-apiserver pkg/apis/apiextensions/validation/validation.go, pkg/apiserver/schema/cel/compilation.go
 */

import { child, type FieldError, index, invalidValue, required } from "@coxswain/apimachinery/objects/errors/field-error";
import { goStruct } from "@coxswain/apimachinery/objects/schema/go/go-print";
import type { CustomResourceDefinition, ValidationRule } from "@coxswain/apimachinery/objects/schema/kinds/apiextensions/v1";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { compile, type Program } from "../../cel/program.ts";
import type { Type } from "../../cel/types.ts";
import { patternOf } from "../patterns.ts";
import { isEmbedded, perSchema, type Schema, schemaIn, schemasWithin } from "../schema.ts";
import { ruleType } from "./types.ts";

export interface CompiledRule {
  readonly rule: ValidationRule;
  /** undefined for an empty rule. */
  readonly program?: Program | { readonly fault: string };
}

/** Name of the variable that holds the validated value. */
export const self = "self";

/** Rules of this schema alone, without those of its properties and items. */
export function rulesOf(schema: Schema): readonly ValidationRule[] {
  return (schema["x-kubernetes-validations"] as readonly ValidationRule[] | undefined) ?? []; // cast: the definition was decoded, with this type for the rules; null counts as absent
}

/** @returns an empty list for values that rules cannot access (see `ruleType`) */
export function compileRules(schema: Schema, isResource = isEmbedded(schema)): CompiledRule[] {
  return [...compileInTurn(schema, isResource)];
}

/** Compiled rules by index, cached per schema. */
// Cast: an empty list has no type of its own.
const compiledOf = perSchema(() => ({ ofResource: [] as CompiledRule[], ofValue: [] as CompiledRule[] }));

/** Compiles rules one at a time, so that the caller can yield in between; uses the cache. */
export function* compileInTurn(schema: Schema, isResource = isEmbedded(schema)): Generator<CompiledRule> {
  const rules = rulesOf(schema);
  const type = rules.length === 0 ? undefined : ruleType(schema, "selfType", isResource);
  if (type === undefined) return;
  // Upstream also declares a variable `rule`, but never sets it.
  const variables = new Map([self, "rule"].map((name) => [name, type]));
  const known = compiledOf(schema)[isResource ? "ofResource" : "ofValue"];
  for (const [i, rule] of rules.entries()) {
    let compiled = known[i];
    if (compiled?.rule !== rule) {
      compiled = compileRule(rule, variables);
      known[i] = compiled;
    }
    yield compiled;
  }
}

function compileRule(rule: ValidationRule, variables: ReadonlyMap<string, Type>): CompiledRule {
  const text = rule.rule ?? "";
  if (text.trim() === "") return { rule };
  const compiled = compile(text, variables);
  if ("fault" in compiled) return { rule, program: { fault: `compilation failed: ${compiled.fault}` } };
  const isBool = compiled.type.kind === "primitive" && compiled.type.name === "bool";
  return { rule, program: isBool ? compiled : { fault: "cel expression must evaluate to a bool" } };
}

/**
 * Compiles all rules and patterns of a definition into the caches, yielding to the event loop. Later synchronous users would
 * otherwise block it.
 */
export async function compileAhead(turns: Turns, definition: Pick<CustomResourceDefinition, "spec">): Promise<void> {
  await turns.run(compileEach(definition));
}

function* compileEach({ spec }: Pick<CustomResourceDefinition, "spec">): Steps<void> {
  for (const { schema } of spec?.versions ?? []) {
    const root = schemaIn(schema);
    if (root === undefined) continue;
    for (const part of schemasWithin(root)) {
      for (const _rule of compileInTurn(part, part === root || isEmbedded(part))) yield;
      if (patternOf(part) !== undefined) yield;
    }
  }
}

/** Validates the rules of one schema. @param hasStructure false: rules are not compiled, because the types are not known */
export function validateRules(schema: Schema, path: string, isResource: boolean, hasStructure: boolean): FieldError[] {
  const at = child(path, "x-kubernetes-validations");
  const texts = rulesOf(schema).flatMap((rule, i) => ruleTextFaults(rule, index(at, i)));
  if (!hasStructure) return texts;
  const compiled = compileRules(schema, isResource || isEmbedded(schema)).flatMap(({ rule, program }, i) =>
    program !== undefined && "fault" in program
      ? [invalidValue(child(index(at, i), "rule"), goStruct("apiextensions/v1.ValidationRule", rule), program.fault)]
      : [],
  );
  return [...texts, ...compiled];
}

function ruleTextFaults({ rule = "", message = "" }: ValidationRule, path: string): FieldError[] {
  const hasBreak = (text: string): boolean => /[\n\r]/.test(text);
  const [words, trimmed] = [rule.trim(), message.trim()];
  const at = child(path, "message");
  if (words === "") return [required(child(path, "rule"), "rule is not specified")];
  if (message !== "" && trimmed === "") return [invalidValue(at, message, "message must be non-empty if specified")];
  if (hasBreak(trimmed)) return [invalidValue(at, message, "message must not contain line breaks")];
  if (hasBreak(words) && trimmed === "") return [required(at, "message must be specified if rule contains line breaks")];
  return [];
}
