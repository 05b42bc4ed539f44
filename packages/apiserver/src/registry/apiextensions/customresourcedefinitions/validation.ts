import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import { duplicate, invalidValue, notSupported, required } from "@coxswain/apimachinery/errors/field-error";
import { child, index } from "@coxswain/apimachinery/errors/field-path";
import type { CustomResourceDefinition } from "@coxswain/apimachinery/schema/kinds/apiextensions/v1";
import { immutableField, isDns1035Label, isDns1123Label, isDns1123Subdomain } from "../../field-checks.ts";

/**
 * Names, versions and scope. The schemas themselves are checked where they are served.
 * Source: apiextensions-apiserver pkg/apis/apiextensions/validation/validation.go
 */
export function validateCustomResourceDefinition(crd: CustomResourceDefinition): FieldError[] {
  const errors: FieldError[] = [];
  const { spec } = crd;
  const expected = `${spec?.names?.plural ?? ""}.${spec?.group ?? ""}`;
  if (crd.metadata.name !== expected) {
    errors.push(invalidValue("metadata.name", crd.metadata.name ?? "", 'must be spec.names.plural+"."+spec.group'));
  }
  if (!spec) return [...errors, required("spec.group")];
  if (!spec.group) errors.push(required("spec.group"));
  else {
    const messages = isDns1123Subdomain(spec.group);
    if (messages.length > 0) errors.push(invalidValue("spec.group", spec.group, messages.join(",")));
    else if (spec.group.split(".").length < 2) {
      errors.push(invalidValue("spec.group", spec.group, "should be a domain with at least one dot"));
    }
  }
  const scope = spec.scope as string | undefined;
  if (!scope) errors.push(required("spec.scope"));
  else if (scope !== "Cluster" && scope !== "Namespaced")
    errors.push(notSupported("spec.scope", scope, ["Cluster", "Namespaced"]));
  errors.push(...validateVersions(spec.versions ?? []));
  errors.push(...validateNames(spec.names ?? {}, "spec.names"));
  const strategy = spec.conversion?.strategy as string | undefined;
  if (strategy !== undefined && strategy !== "None" && strategy !== "Webhook") {
    errors.push(notSupported("spec.conversion.strategy", strategy, ["None", "Webhook"]));
  }
  if (strategy === "Webhook" && !spec.conversion?.webhook?.clientConfig) {
    errors.push(required("spec.conversion.webhookClientConfig", "required when strategy is set to Webhook"));
  }
  if (crd.status?.storedVersions !== undefined && crd.status.storedVersions.length === 0) {
    errors.push(invalidValue("status.storedVersions", crd.status.storedVersions, "must have at least one stored version"));
  }
  return errors;
}

type Versions = NonNullable<NonNullable<CustomResourceDefinition["spec"]>["versions"]>;

function validateVersions(versions: Versions): FieldError[] {
  const errors: FieldError[] = [];
  const path = "spec.versions";
  if (versions.length === 0) errors.push(required(path, "must have at least one version"));
  const seen = new Set<string>();
  let storage = 0;
  for (const [i, version] of versions.entries()) {
    const at = index(path, i);
    const messages = isDns1035Label(version.name ?? "");
    if (messages.length > 0) errors.push(invalidValue(child(at, "name"), version.name ?? "", messages.join(",")));
    if (seen.has(version.name)) errors.push(duplicate(child(at, "name"), version.name));
    seen.add(version.name);
    if (version.storage) storage++;
    if (!version.schema?.openAPIV3Schema)
      errors.push(required(child(child(at, "schema"), "openAPIV3Schema"), "schemas are required"));
    else if (
      version.schema.openAPIV3Schema.type !== "object" &&
      !version.schema.openAPIV3Schema["x-kubernetes-preserve-unknown-fields"]
    ) {
      const type = version.schema.openAPIV3Schema.type;
      const at2 = child(child(child(at, "schema"), "openAPIV3Schema"), "type");
      errors.push(type ? invalidValue(at2, type, "must be object at the root") : required(at2, "must not be empty at the root"));
    }
  }
  if (versions.length > 0 && storage !== 1) {
    errors.push(
      invalidValue(
        path,
        versions.map((version) => version.name),
        "must have exactly one version marked as storage version",
      ),
    );
  }
  return errors;
}

interface Names {
  plural?: string;
  singular?: string;
  kind?: string;
  listKind?: string;
  shortNames?: string[];
  categories?: string[];
}

function validateNames(names: Names, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const check = (field: string, value: string | undefined, lower = false): void => {
    if (!value) {
      errors.push(required(child(path, field)));
      return;
    }
    const messages = isDns1035Label(lower ? value.toLowerCase() : value);
    if (messages.length > 0) {
      errors.push(
        invalidValue(
          child(path, field),
          value,
          lower ? `may have mixed case, but should otherwise match: ${messages.join(",")}` : messages.join(","),
        ),
      );
    }
  };
  check("plural", names.plural);
  if (names.singular) check("singular", names.singular);
  check("kind", names.kind, true);
  check("listKind", names.listKind, true);
  if (names.kind && names.kind === names.listKind) {
    errors.push(invalidValue(child(path, "listKind"), names.listKind, "kind and listKind may not be the same"));
  }
  for (const [i, name] of (names.shortNames ?? []).entries()) {
    const messages = isDns1035Label(name);
    if (messages.length > 0) errors.push(invalidValue(index(child(path, "shortNames"), i), name, messages.join(",")));
  }
  for (const [i, category] of (names.categories ?? []).entries()) {
    const messages = isDns1123Label(category);
    if (messages.length > 0) errors.push(invalidValue(index(child(path, "categories"), i), category, messages.join(",")));
  }
  return errors;
}

export function validateCustomResourceDefinitionUpdate(
  next: CustomResourceDefinition,
  current: CustomResourceDefinition,
): FieldError[] {
  const errors: FieldError[] = [];
  errors.push(...immutableField(next.spec?.group, current.spec?.group, "spec.group"));
  errors.push(...immutableField(next.spec?.names?.plural, current.spec?.names?.plural, "spec.names.plural"));
  const established = (current.status?.conditions ?? []).some((c) => c.type === "Established" && c.status === "True");
  if (established) {
    errors.push(...immutableField(next.spec?.scope, current.spec?.scope, "spec.scope"));
    errors.push(...immutableField(next.spec?.names?.kind, current.spec?.names?.kind, "spec.names.kind"));
  }
  const names = new Set((next.spec?.versions ?? []).map((version) => version.name));
  for (const [i, version] of (next.status?.storedVersions ?? []).entries()) {
    if (!names.has(version))
      errors.push(invalidValue(index("status.storedVersions", i), version, "must appear in spec.versions"));
  }
  return errors;
}
