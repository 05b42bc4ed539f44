import { child, type FieldError, invalidValue, mapKey, required } from "@coxswain/apimachinery/objects/errors/field-error";
import type {
  CustomResourceDefinition,
  CustomResourceDefinitionNames,
} from "@coxswain/apimachinery/objects/schema/kinds/apiextensions/v1";
import { dns1035LabelProblems, dns1123SubdomainProblems } from "../../field-checks.ts";
import { each, need } from "../../rules.ts";

/** A group is a DNS-1123 subdomain of at least two labels. */
export function validateGroup(group: string | undefined, path: string): FieldError[] {
  if (!group) return [required(path)];
  const faults = dns1123SubdomainProblems(group);
  if (faults.length > 0) return [invalidValue(path, group, faults.join(","))];
  return group.includes(".") ? [] : [invalidValue(path, group, "should be a domain with at least one dot")];
}

/** Names that are required in the spec, but not in the status. */
export function needNames(names: CustomResourceDefinitionNames, path: string): FieldError[] {
  return (["plural", "singular", "kind", "listKind"] as const).flatMap((field) => need(names[field], child(path, field)));
}

/**
 * Validates the names that are set; `needNames` reports missing ones. Kind and listKind may have mixed case.
 * Source: ValidateCustomResourceDefinitionNames
 */
export function validateNames(names: CustomResourceDefinitionNames, path: string): FieldError[] {
  const label = (value: string | undefined, at: string, prefix = ""): FieldError[] => {
    const faults = dns1035LabelProblems((prefix === "" ? value : value?.toLowerCase()) ?? "");
    return faults.length > 0 ? [invalidValue(at, value ?? "", `${prefix}${faults.join(",")}`)] : [];
  };
  const optional = (field: "plural" | "singular" | "kind" | "listKind", prefix = ""): FieldError[] =>
    names[field] ? label(names[field], child(path, field), prefix) : [];
  const mixed = "may have mixed case, but should otherwise match: ";
  return [
    ...optional("plural"),
    ...optional("singular"),
    ...optional("kind", mixed),
    ...optional("listKind", mixed),
    ...each(names.shortNames, child(path, "shortNames"), (name, at) => label(name, at)),
    ...(names.kind && names.kind === names.listKind
      ? [invalidValue(child(path, "listKind"), names.listKind, "kind and listKind may not be the same")]
      : []),
    ...each(names.categories, child(path, "categories"), (name, at) => label(name, at)),
  ];
}

export const approvalKey = "api-approved.kubernetes.io";
/** Suffix of the error texts: the policy for protected groups. */
export const seeApprovalPolicy = "see https://github.com/kubernetes/enhancements/pull/1111";
type Approval = "missing" | "bypassed" | "invalid" | "approved";

/** Protected groups need an approval annotation; no error when its state did not change. Source: validateAPIApproval */
export function validateApproval(next: CustomResourceDefinition, current: CustomResourceDefinition | undefined): FieldError[] {
  if (!isProtectedGroup(next.spec?.group ?? "")) return [];
  const state = approvalOf(next);
  if (current && approvalOf(current) === state) return [];
  const at = mapKey("metadata.annotations", approvalKey);
  if (state === "missing")
    return [required(at, `protected groups must have approval annotation "${approvalKey}", ${seeApprovalPolicy}`)];
  if (state !== "invalid") return [];
  const either = `with either a URL or a reason starting with "unapproved", ${seeApprovalPolicy}`;
  const value = next.metadata.annotations?.[approvalKey] ?? "";
  return [invalidValue(at, value, `protected groups must have approval annotation "${approvalKey}" ${either}`)];
}

/** Whether the group is k8s.io, kubernetes.io or a subdomain of them. Source: apihelpers.IsProtectedCommunityGroup */
export function isProtectedGroup(group: string): boolean {
  return /(^|\.)(k8s|kubernetes)\.io$/.test(group);
}

/**
 * State of the annotation api-approved.kubernetes.io: a URL approves, a text that begins with `unapproved` bypasses approval.
 * Source: apihelpers.GetAPIApprovalState
 */
export function approvalOf({ metadata }: CustomResourceDefinition): Approval {
  const value = metadata.annotations?.[approvalKey] ?? "";
  if (value === "") return "missing";
  if (value.startsWith("unapproved")) return "bypassed";
  return URL.canParse(value) && new URL(value).host !== "" ? "approved" : "invalid";
}
