import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import { forbiddenField, invalidValue } from "@coxswain/apimachinery/errors/field-error";
import { child } from "@coxswain/apimachinery/errors/field-path";
import { GoText } from "@coxswain/apimachinery/errors/go-syntax";
import { deepEqual } from "@coxswain/apimachinery/meta/deep-equal";
import type {
  CustomResourceDefinitionSpec,
  CustomResourceValidation,
} from "@coxswain/apimachinery/schema/kinds/apiextensions/v1";
import { reviewVersions } from "../../admissionregistration/validation.ts";
import { prune, validateDefaults } from "./default-rules.ts";
import { internalSpecOf, schemasOf } from "./internal.ts";
import { listMapKeyRules, listRules } from "./list-rules.ts";
import { hasStructure, type SchemaOptions, schemaTypes, validateSchema } from "./schema-rules.ts";
import { anySchema, hasDefault, type Schema } from "./schemas.ts";
import { validateStructural } from "./structural.ts";

/** What an update asks less of, because the stored definition has it already. Source: validationOptions */
export interface Options extends SchemaOptions {
  readonly everySchema: boolean;
  readonly structural: boolean;
  readonly prunedDefaults: boolean;
  readonly knownReviewVersion: boolean;
}

export const strict: Options = {
  everySchema: true,
  structural: true,
  prunedDefaults: true,
  knownReviewVersion: true,
  validTypes: true,
  atomicSets: true,
  safeMapKeys: true,
};

/** Source: requireOpenAPISchema, requireStructuralSchema, requirePrunedDefaults, requireAtomicSetType, … */
export function leniencyOf(spec: CustomResourceDefinitionSpec): Options {
  const schemas = schemasOf(internalSpecOf(spec)).flatMap(({ openAPIV3Schema }) =>
    openAPIV3Schema ? [openAPIV3Schema as Schema] : [],
  );
  const none = (is: (schema: Schema) => boolean): boolean => !schemas.some((schema) => anySchema(schema, is));
  const reviews = spec.conversion?.webhook?.conversionReviewVersions ?? [];
  return {
    everySchema: (spec.versions ?? []).every((version) => version.schema?.openAPIV3Schema),
    structural: schemas.every((schema) => hasStructureThroughout(schema) && validateStructural(schema, "").length === 0),
    prunedDefaults: none((schema) => hasDefault(schema) && !deepEqual(prune(schema.default, schema), schema.default)),
    knownReviewVersion: reviews.length === 0 || reviews.some((version) => reviewVersions.includes(version)),
    validTypes: none(({ type }) => Boolean(type) && !schemaTypes.includes(type as string)),
    atomicSets: none((schema) => listRules(schema, "", true).length > listRules(schema, "", false).length),
    safeMapKeys: none((schema) => listMapKeyRules(schema, "").length > 0),
  };
}

const hasStructureThroughout = (schema: Schema): boolean => !anySchema(schema, (part) => !hasStructure(part));

/** @param path of the object that has the schema. Source: validateCustomResourceDefinitionValidation */
export function validateVersionSchema(
  validation: CustomResourceValidation | undefined,
  statusEnabled: boolean,
  path: string,
  options: Options,
): FieldError[] {
  const schema = validation?.openAPIV3Schema as Schema | undefined;
  if (!schema) return [];
  const at = child(path, "openAPIV3Schema");
  const errors = statusEnabled ? rootWords(schema, at) : [];
  if (schema.nullable) errors.push(forbiddenField(child(at, "nullable"), "nullable cannot be true at the root"));
  errors.push(...validateSchema(schema, at, options));
  if (!options.structural || !hasStructureThroughout(schema)) return errors;
  const structure = validateStructural(schema, at);
  return [...errors, ...(structure.length > 0 ? structure : validateDefaults(schema, at, options.prunedDefaults))];
}

/** Words that a schema may have at its root beside a schema for status, in Go's names, as the refusal lists them. */
const rootFields =
  "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations";
const rootText = `only [${rootFields}] fields are allowed at the root of the schema if the status subresource is enabled`;

function rootWords(schema: Schema, path: string): FieldError[] {
  if (schema.type && schema.type !== "object") {
    const text = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled';
    return [invalidValue(child(path, "type"), schema.type, text)];
  }
  const allowed = rootFields.split(" ");
  const other = Object.entries(schema).some(([word, value]) => !isUnset(value) && !allowed.includes(goField(word)));
  return other ? [invalidValue(path, new GoText("apiextensions.JSONSchemaProps{…}"), rootText)] : [];
}

function isUnset(value: unknown): boolean {
  return value === undefined || value === null || value === "" || value === false;
}

/** `maxItems` is MaxItems, `x-kubernetes-preserve-unknown-fields` XPreserveUnknownFields. */
function goField(word: string): string {
  const steps = word.replace("x-kubernetes-", "x-").split("-");
  return steps.map((step) => step.slice(0, 1).toUpperCase() + step.slice(1)).join("");
}
