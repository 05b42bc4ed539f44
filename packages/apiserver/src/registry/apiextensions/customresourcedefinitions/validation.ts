import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import { invalidValue, required } from "@coxswain/apimachinery/errors/field-error";
import { child, index, mapKey } from "@coxswain/apimachinery/errors/field-path";
import { GoText } from "@coxswain/apimachinery/errors/go-syntax";
import type {
  CustomResourceConversion,
  CustomResourceDefinition,
  CustomResourceDefinitionNames,
  CustomResourceDefinitionSpec,
} from "@coxswain/apimachinery/schema/kinds/apiextensions/v1";
import { validateReviewVersions, validateWebhookClient } from "../../admissionregistration/validation.ts";
import { immutableField, isDns1035Label, isDns1123Subdomain } from "../../field-checks.ts";
import { each, need, requiredOneOf } from "../../rules.ts";
import { validateSchema } from "./schema-rules.ts";
import { validateStructural } from "./structural.ts";
import { validateVersion } from "./versions.ts";

const preserveText = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";

/** Source: apiextensions-apiserver pkg/apis/apiextensions/validation/validation.go ValidateCustomResourceDefinition */
export function validateCustomResourceDefinition(crd: CustomResourceDefinition): FieldError[] {
  const { spec } = crd;
  const name = crd.metadata.name ?? "";
  const expected = `${spec?.names?.plural ?? ""}.${spec?.group ?? ""}`;
  return [
    ...(name === "" || name === expected
      ? []
      : [invalidValue("metadata.name", name, 'must be spec.names.plural+"."+spec.group')]),
    ...validateSpec(spec ?? ({} as CustomResourceDefinitionSpec), "spec"),
    ...validateStoredVersions(crd, "status.storedVersions"),
    ...validateApproval(crd),
    ...(spec?.preserveUnknownFields ? [invalidValue("spec.preserveUnknownFields", true, preserveText)] : []),
  ];
}

function validateSpec(spec: CustomResourceDefinitionSpec, path: string): FieldError[] {
  const { versions = [], names } = spec;
  const at = child(path, "versions");
  const errors = [
    ...validateGroup(spec.group, child(path, "group")),
    ...requiredOneOf(spec.scope, ["Cluster", "Namespaced"], child(path, "scope")),
  ];
  for (const [i, version] of versions.entries()) {
    if (version.served && !version.schema?.openAPIV3Schema)
      errors.push(required(child(index(at, i), "schema", "openAPIV3Schema"), "schemas are required"));
  }
  errors.push(
    ...each(versions, at, (version, own) => {
      const schema = version.schema?.openAPIV3Schema;
      const schemaPath = child(own, "schema", "openAPIV3Schema");
      const faults = isDns1035Label(version.name ?? "");
      return [
        ...(faults.length > 0 ? [invalidValue(child(own, "name"), version.name ?? "", faults.join(","))] : []),
        ...validateVersion(version, own),
        ...(schema ? [...validateSchema(schema, schemaPath), ...validateStructural(schema, schemaPath)] : []),
      ];
    }),
  );
  const shown = new GoText(`[]apiextensions.CustomResourceDefinitionVersion(${versions.length === 0 ? "nil" : "…"})`);
  if (new Set(versions.map((version) => version.name)).size < versions.length)
    errors.push(invalidValue(at, shown, "must contain unique version names"));
  if (versions.filter((version) => version.storage).length !== 1)
    errors.push(invalidValue(at, shown, "must have exactly one version marked as storage version"));
  return [
    ...errors,
    ...validateNames(names ?? ({} as CustomResourceDefinitionNames), child(path, "names")),
    ...validateConversion(spec.conversion, child(path, "conversion")),
  ];
}

function validateGroup(group: string | undefined, path: string): FieldError[] {
  if (!group) return [required(path)];
  const faults = isDns1123Subdomain(group);
  if (faults.length > 0) return [invalidValue(path, group, faults.join(","))];
  return group.includes(".") ? [] : [invalidValue(path, group, "should be a domain with at least one dot")];
}

/** Some names are needed in a spec; the status takes what it gets. Source: ValidateCustomResourceDefinitionNames */
function validateNames(names: CustomResourceDefinitionNames, path: string): FieldError[] {
  const errors = (["plural", "singular", "kind", "listKind"] as const).flatMap((field) => need(names[field], child(path, field)));
  const label = (value: string | undefined, at: string, mixedCase = false): void => {
    const faults = value ? isDns1035Label(mixedCase ? value.toLowerCase() : value) : [];
    const prefix = mixedCase ? "may have mixed case, but should otherwise match: " : "";
    if (faults.length > 0) errors.push(invalidValue(at, value, `${prefix}${faults.join(",")}`));
  };
  label(names.plural, child(path, "plural"));
  label(names.singular, child(path, "singular"));
  label(names.kind, child(path, "kind"), true);
  label(names.listKind, child(path, "listKind"), true);
  for (const [i, name] of (names.shortNames ?? []).entries()) label(name, index(child(path, "shortNames"), i));
  if (names.kind && names.kind === names.listKind)
    errors.push(invalidValue(child(path, "listKind"), names.listKind, "kind and listKind may not be the same"));
  for (const [i, category] of (names.categories ?? []).entries()) label(category, index(child(path, "categories"), i));
  return errors;
}

/** Webhooks are told below the names that the internal version has. Source: validateCustomResourceConversion */
function validateConversion(conversion: CustomResourceConversion | undefined, path: string): FieldError[] {
  if (!conversion) return [];
  const errors = requiredOneOf(conversion.strategy, ["None", "Webhook"], child(path, "strategy"));
  const at = child(path, "webhookClientConfig");
  const { clientConfig, conversionReviewVersions = [] } = conversion.webhook ?? {};
  if (conversion.strategy === "Webhook") {
    if (!clientConfig) errors.push(required(at, "required when strategy is set to Webhook"));
    else errors.push(...validateWebhookClient(clientConfig, at));
    errors.push(...validateReviewVersions(conversionReviewVersions, child(path, "conversionReviewVersions")));
  } else if (conversion.webhook) {
    errors.push({ type: "FieldValueForbidden", field: at, detail: "should not be set when strategy is not set to Webhook" });
  }
  return errors;
}

/** What was ever stored may still be in etcd: it must stay readable. Source: ValidateCustomResourceDefinitionStoredVersions */
function validateStoredVersions({ spec, status }: CustomResourceDefinition, path: string): FieldError[] {
  const stored = status?.storedVersions ?? [];
  if (stored.length === 0) return [invalidValue(path, stored, "must have at least one stored version")];
  const versions = spec?.versions ?? [];
  const errors = each(stored, path, (name, at) =>
    versions.some((version) => version.name === name) ? [] : [invalidValue(at, name, "must appear in spec.versions")],
  );
  for (const version of versions) {
    if (version.storage && !stored.includes(version.name))
      errors.push(invalidValue(path, stored, `must have the storage version ${version.name}`));
  }
  return errors;
}

const approvalKey = "api-approved.kubernetes.io";

/** Groups of the project itself need its leave. Source: validateAPIApproval, apihelpers.GetAPIApprovalState */
function validateApproval({ metadata, spec }: CustomResourceDefinition): FieldError[] {
  const group = spec?.group ?? "";
  if (!/(^|\.)(k8s|kubernetes)\.io$/.test(group)) return [];
  const at = mapKey("metadata.annotations", approvalKey);
  const value = metadata.annotations?.[approvalKey] ?? "";
  if (value === "") {
    const see = "see https://github.com/kubernetes/enhancements/pull/1111";
    return [required(at, `protected groups must have approval annotation "${approvalKey}", ${see}`)];
  }
  if (value.startsWith("unapproved")) return [];
  if (URL.canParse(value)) return [];
  return [
    invalidValue(
      at,
      value,
      `protected groups must have approval annotation "${approvalKey}" with either a URL or a reason starting with "unapproved", see https://github.com/kubernetes/enhancements/pull/1111`,
    ),
  ];
}

/** Once users can see a kind, its name and scope stay. Source: ValidateCustomResourceDefinitionUpdate */
export function validateCustomResourceDefinitionUpdate(
  next: CustomResourceDefinition,
  current: CustomResourceDefinition,
): FieldError[] {
  const established = (current.status?.conditions ?? []).some(({ type, status }) => type === "Established" && status === "True");
  const [spec, old] = [next.spec, current.spec];
  return [
    ...(established ? immutableField(spec?.scope, old?.scope, "spec.scope") : []),
    ...(established ? immutableField(spec?.names?.kind, old?.names?.kind, "spec.names.kind") : []),
    ...immutableField(spec?.group, old?.group, "spec.group"),
    ...immutableField(spec?.names?.plural, old?.names?.plural, "spec.names.plural"),
  ];
}
