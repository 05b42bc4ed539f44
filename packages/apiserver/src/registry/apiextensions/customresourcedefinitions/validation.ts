import {
  addErrors,
  child,
  type FieldError,
  forbiddenField,
  index,
  invalidValue,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { goStrings } from "@coxswain/apimachinery/objects/errors/go-syntax";
import type {
  CustomResourceConversion,
  CustomResourceDefinition,
  CustomResourceDefinitionSpec,
} from "@coxswain/apimachinery/objects/schema/kinds/apiextensions/v1";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import type { CheckBudget } from "../../../structural-schema/check-budget.ts";
import { validateReviewVersions, validateWebhookClient } from "../../admissionregistration/validation.ts";
import { dns1035LabelProblems, immutableField } from "../../field-checks.ts";
import { each, emptyStruct, requiredOneOf } from "../../rules.ts";
import { goVersion, goVersions, type InternalSpec, internalSpecOf } from "./internal.ts";
import { needNames, validateApproval, validateGroup, validateNames } from "./names.ts";
import { hasDefaults, leniencyOf, type Options, optionsFor, strict } from "./options.ts";
import { definitionBudget, validatingVersionSchema } from "./version-schema.ts";
import { validateColumn, validateDeprecation, validateSubresources } from "./versions.ts";

const preserveText = "cannot set to true, set x-preserve-unknown-fields to true in spec.versions[*].schema instead";

/** Source: apiextensions-apiserver pkg/apis/apiextensions/validation/validation.go ValidateCustomResourceDefinition */
export function* validateCustomResourceDefinition(crd: CustomResourceDefinition): Steps<FieldError[]> {
  const expected = `${crd.spec?.names?.plural ?? ""}.${crd.spec?.group ?? ""}`;
  const named = (field: "generateName" | "name"): FieldError[] => {
    const name = crd.metadata[field];
    const wrong = name && name !== expected;
    return wrong ? [invalidValue(`metadata.${field}`, name, 'must be spec.names.plural+"."+spec.group')] : [];
  };
  return [...named("generateName"), ...named("name"), ...(yield* validateDefinition(crd, undefined, strict))];
}

/**
 * Names and scope are immutable once the definition is established. Errors that the stored definition already has are
 * tolerated.
 * Source: ValidateCustomResourceDefinitionUpdate
 */
export function* validateCustomResourceDefinitionUpdate(
  next: CustomResourceDefinition,
  current: CustomResourceDefinition,
): Steps<FieldError[]> {
  const options = yield* leniencyOf(specOf(current));
  yield;
  return yield* validateDefinition(next, current, options);
}

/** Validates the accepted names only, none of which is required. Source: ValidateUpdateCustomResourceDefinitionStatus */
export function validateCustomResourceDefinitionStatus({ status }: CustomResourceDefinition): FieldError[] {
  return validateNames(status?.acceptedNames ?? emptyStruct(), "status.acceptedNames");
}

const specOf = (crd: CustomResourceDefinition): CustomResourceDefinitionSpec => crd.spec ?? emptyStruct();

function* validateDefinition(
  crd: CustomResourceDefinition,
  current: CustomResourceDefinition | undefined,
  options: Options,
): Steps<FieldError[]> {
  const spec = specOf(crd);
  const internal = internalSpecOf(spec);
  const preserving = spec.preserveUnknownFields === true && current?.spec?.preserveUnknownFields !== true;
  return [
    ...(yield* validateSpec(spec, internal, "spec", options)),
    ...(current ? keptNames(spec, current, "spec") : []),
    ...validateCustomResourceDefinitionStatus(crd),
    ...validateStoredVersions(internal, crd.status?.storedVersions ?? [], "status.storedVersions"),
    ...validateApproval(crd, current),
    ...(preserving ? [invalidValue("spec.preserveUnknownFields", true, preserveText)] : []),
  ];
}

function* validateSpec(
  spec: CustomResourceDefinitionSpec,
  internal: InternalSpec,
  path: string,
  requested: Options,
): Steps<FieldError[]> {
  const options = optionsFor(spec, requested);
  yield;
  const names = spec.names ?? emptyStruct();
  const budget = definitionBudget();
  return [
    ...validateGroup(spec.group, child(path, "group")),
    ...requiredOneOf(spec.scope, ["Cluster", "Namespaced"], child(path, "scope")),
    ...missingSchemas(spec, internal, child(path, "versions"), options),
    ...(spec.preserveUnknownFields && hasDefaults(spec)
      ? [invalidValue(child(path, "preserveUnknownFields"), true, "must be false in order to use defaults in the schema")]
      : []),
    ...(yield* validateVersions(spec, internal, path, options, budget)),
    ...needNames(names, child(path, "names")),
    ...validateNames(names, child(path, "names")),
    ...(yield* validatingVersionSchema(internal.validation, hasStatus(internal), child(path, "validation"), options, budget)),
    ...validateSubresources(internal.subresources, child(path, "subresources")),
    ...each(internal.additionalPrinterColumns, child(path, "additionalPrinterColumns"), validateColumn),
    ...(yield* validateConversion(spec, child(path, "conversion"), options)),
  ];
}

function hasStatus({ subresources, versions }: InternalSpec): boolean {
  return [subresources, ...versions.map((version) => version.subresources)].some((each) => each?.status);
}

function missingSchemas(
  spec: CustomResourceDefinitionSpec,
  { validation, versions }: InternalSpec,
  path: string,
  { everySchema }: Options,
): FieldError[] {
  if (validation?.openAPIV3Schema || (!everySchema && spec.preserveUnknownFields)) return [];
  return each(versions, path, ({ schema, served }, at) => {
    if (schema?.openAPIV3Schema || (!everySchema && !served)) return [];
    const why = everySchema ? "schemas are required" : "because otherwise all fields are pruned";
    return [required(child(at, "schema", "openAPIV3Schema"), why)];
  });
}

function* validateVersions(
  spec: CustomResourceDefinitionSpec,
  internal: InternalSpec,
  path: string,
  options: Options,
  budget: CheckBudget,
): Steps<FieldError[]> {
  const { versions } = internal;
  const at = child(path, "versions");
  const label = (name: string | undefined, own: string): FieldError[] => {
    const faults = dns1035LabelProblems(name ?? "");
    return faults.length > 0 ? [invalidValue(own, name ?? "", faults.join(","))] : [];
  };
  const errors: FieldError[] = [];
  for (const [i, version] of versions.entries()) {
    const own = index(at, i);
    addErrors(errors, label(version.name, child(own, "name")));
    addErrors(errors, validateDeprecation(version, own));
    const hasOwnStatus = Boolean((internal.subresources ?? version.subresources)?.status);
    addErrors(errors, yield* validatingVersionSchema(version.schema, hasOwnStatus, child(own, "schema"), options, budget));
    addErrors(errors, validateSubresources(version.subresources, child(own, "subresources")));
    addErrors(errors, each(version.additionalPrinterColumns, child(own, "additionalPrinterColumns"), validateColumn));
    yield;
  }
  const refused = (why: string): FieldError => invalidValue(at, goVersions(spec.versions ? versions : undefined), why);
  if (new Set(versions.map((version) => version.name)).size < versions.length)
    errors.push(refused("must contain unique version names"));
  yield;
  if (versions.filter((version) => version.storage).length !== 1)
    errors.push(refused("must have exactly one version marked as storage version"));
  yield;
  // The internal version has a `version` field with the first version's name; an invalid name is reported for it, too.
  if (spec.versions?.[0]?.name) errors.push(...label(spec.versions[0].name, child(path, "version")));
  return errors;
}

/** Error paths use the field names of the internal version (webhookClientConfig). Source: validateCustomResourceConversion */
function* validateConversion(spec: CustomResourceDefinitionSpec, path: string, options: Options): Steps<FieldError[]> {
  const conversion: CustomResourceConversion | undefined = spec.conversion;
  if (!conversion) return [];
  const errors: FieldError[] = [];
  if (conversion.strategy !== "None" && spec.preserveUnknownFields) {
    const text = "must be None if spec.preserveUnknownFields is true";
    errors.push(invalidValue(child(path, "strategy"), conversion.strategy ?? "", text));
  }
  errors.push(...requiredOneOf(conversion.strategy, ["None", "Webhook"], child(path, "strategy")));
  const [client, versions] = [child(path, "webhookClientConfig"), child(path, "conversionReviewVersions")];
  const { clientConfig, conversionReviewVersions = [] } = conversion.webhook ?? {};
  if (conversion.strategy === "Webhook") {
    if (!clientConfig) errors.push(required(client, "required when strategy is set to Webhook"));
    else errors.push(...validateWebhookClient(clientConfig, client));
    if (!conversionReviewVersions?.length) errors.push(required(versions));
    else addErrors(errors, yield* validateReviewVersions(conversionReviewVersions, versions, options.knownReviewVersion));
    return errors;
  }
  const text = "should not be set when strategy is not set to Webhook";
  if (clientConfig) errors.push(forbiddenField(client, text));
  if (conversionReviewVersions?.length) errors.push(forbiddenField(versions, text));
  return errors;
}

/** Versions that may still be in etcd must not be removed. Source: ValidateCustomResourceDefinitionStoredVersions */
function validateStoredVersions({ versions }: InternalSpec, stored: readonly string[], path: string): FieldError[] {
  if (stored.length === 0) return [invalidValue(path, goStrings("string", undefined), "must have at least one stored version")];
  const lastAt = new Map(stored.map((name, i) => [name, i]));
  const names = new Set(versions.map(({ name }) => name));
  const unstored = versions.filter((version) => version.storage && !lastAt.has(version.name));
  return [
    ...unstored.map((version) => invalidValue(path, goVersion(version), `must have the storage version ${version.name}`)),
    ...stored
      .map((name, i) => ({ name, i }))
      .filter(({ name, i }) => lastAt.get(name) === i && !names.has(name))
      .map(({ name, i }) => invalidValue(index(path, i), name, "must appear in spec.versions")),
  ];
}

function keptNames(spec: CustomResourceDefinitionSpec, current: CustomResourceDefinition, path: string): FieldError[] {
  const established = (current.status?.conditions ?? []).some(({ type, status }) => type === "Established" && status === "True");
  const old = specOf(current);
  const [kind, plural] = [child(path, "names", "kind"), child(path, "names", "plural")];
  return [
    ...(established ? immutableField(spec.scope, old.scope, child(path, "scope")) : []),
    ...(established ? immutableField(spec.names?.kind, old.names?.kind, kind) : []),
    ...immutableField(spec.group, old.group, child(path, "group")),
    ...immutableField(spec.names?.plural, old.names?.plural, plural),
  ];
}
