import {
  addErrors,
  child,
  type FieldError,
  forbiddenField,
  invalidValue,
} from "@coxswain/apimachinery/objects/errors/field-error";
import type { CustomResourceValidation } from "@coxswain/apimachinery/objects/schema/kinds/apiextensions/v1";
import { atOnce, type Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { CheckBudget } from "../../../structural-schema/check-budget.ts";
import { validatingDefaults } from "../../../structural-schema/default-rules.ts";
import { validatingSchema } from "../../../structural-schema/keywords.ts";
import { type Schema, schemaIn } from "../../../structural-schema/schema.ts";
import { goSchema } from "../../../structural-schema/schema-text.ts";
import { hasStructureThroughout, validatingStructural } from "../../../structural-schema/structural.ts";
import type { Options } from "./options.ts";

/** Budget for the defaults of all versions of one definition: about 0.2 s. */
export const definitionBudget = (): CheckBudget => new CheckBudget(200_000);

/** @param path of the object that has the schema. Source: validateCustomResourceDefinitionValidation */
export function validateVersionSchema(
  validation: CustomResourceValidation | undefined,
  statusEnabled: boolean,
  path: string,
  options: Options,
  budget = definitionBudget(),
): FieldError[] {
  return atOnce(validatingVersionSchema(validation, statusEnabled, path, options, budget));
}

/** As `validateVersionSchema`, yielding between its passes over a large schema. */
export function* validatingVersionSchema(
  validation: CustomResourceValidation | undefined,
  statusEnabled: boolean,
  path: string,
  options: Options,
  budget: CheckBudget,
): Steps<FieldError[]> {
  const schema = schemaIn(validation);
  if (!schema) return [];
  const at = child(path, "openAPIV3Schema");
  const errors = statusEnabled ? rootWords(schema, at) : [];
  if (schema.nullable) errors.push(forbiddenField(child(at, "nullable"), "nullable cannot be true at the root"));
  yield;
  addErrors(errors, yield* validatingSchema(schema, at, options));
  if (!options.structural) return errors;
  yield;
  // Of the keywords that make a schema non-structural, only `$schema` is not rejected above.
  if (!hasStructureThroughout(schema))
    return errors.length > 0 ? errors : [invalidValue(at, "", "OpenAPIV3Schema 'schema' is not supported")];
  yield;
  const structure = yield* validatingStructural(schema, at);
  yield;
  if (structure.length > 0) return [...errors, ...structure];
  return [...errors, ...(yield* validatingDefaults(schema, at, options.prunedDefaults, budget))];
}

/** Go names of the keywords allowed at the root when the status subresource is enabled, in the order of the error text. */
const rootFields =
  "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations";
const rootText = `only [${rootFields}] fields are allowed at the root of the schema if the status subresource is enabled`;

/** Reports only the first error, in the order of the Go struct fields. */
function rootWords(schema: Schema, path: string): FieldError[] {
  const allowed = rootFields.split(" ");
  const others = Object.entries(schema).flatMap(([word, value]) =>
    isUnset(value) || allowed.includes(goField(word)) ? [] : [word],
  );
  const untyped = schema.type && schema.type !== "object";
  if (untyped && !others.some((word) => beforeType.includes(word))) {
    const text = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled';
    return [invalidValue(child(path, "type"), schema.type, text)];
  }
  return others.length > 0 ? [invalidValue(path, goSchema(schema), rootText)] : [];
}

const beforeType = ["id", "$schema", "$ref"];

function isUnset(value: unknown): boolean {
  return value === undefined || value === null || value === "" || value === false;
}

/** Go field name: MaxItems for `maxItems`, XPreserveUnknownFields for `x-kubernetes-preserve-unknown-fields`. */
function goField(word: string): string {
  const steps = word.replace("x-kubernetes-", "x-").split("-");
  return steps.map((step) => step.slice(0, 1).toUpperCase() + step.slice(1)).join("");
}
