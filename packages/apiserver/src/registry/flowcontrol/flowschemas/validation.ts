import {
  child,
  type FieldError,
  forbiddenField,
  invalidValue,
  notSupported,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { goStruct } from "@coxswain/apimachinery/objects/schema/go/go-print";
import type {
  FlowSchema,
  NonResourcePolicyRule,
  PolicyRulesWithSubjects,
  ResourcePolicyRule,
  Subject,
} from "@coxswain/apimachinery/objects/schema/kinds/flowcontrol/v1beta2";
import { dns1123Label, dns1123LabelProblems, dns1123Subdomain } from "../../field-checks.ts";
import { each, need, saying } from "../../rules.ts";

const highestPrecedence = 10_000;

/** Source: pkg/apis/flowcontrol/validation ValidateFlowSchema */
export function validateFlowSchema(schema: FlowSchema): FieldError[] {
  const { spec } = schema;
  const precedence = spec?.matchingPrecedence ?? 0;
  const at = "spec.matchingPrecedence";
  const errors: FieldError[] = [];
  if (precedence <= 0) errors.push(invalidValue(at, precedence, "must be a positive value"));
  if (precedence > highestPrecedence) errors.push(invalidValue(at, precedence, `must not be greater than ${highestPrecedence}`));
  if (precedence === 1 && schema.metadata.name !== "exempt")
    errors.push(invalidValue(at, precedence, "only the schema named 'exempt' may have matchingPrecedence 1"));
  const method = spec?.distinguisherMethod;
  if (method && method.type !== "ByUser" && method.type !== "ByNamespace")
    errors.push(
      notSupported("spec.distinguisherMethod.type", goStruct("flowcontrol/v1beta2.FlowDistinguisherMethod", method), [
        "ByNamespace",
        "ByUser",
      ]),
    );
  const level = spec?.priorityLevelConfiguration?.name ?? "";
  const levelPath = "spec.priorityLevelConfiguration.name";
  errors.push(...(level ? dns1123Subdomain(level, levelPath) : [required(levelPath, "must reference a priority level")]));
  return [...errors, ...each(spec?.rules, "spec.rules", validateRule)];
}

function validateRule(rule: PolicyRulesWithSubjects, path: string): FieldError[] {
  const { subjects, resourceRules, nonResourceRules } = rule;
  const errors = [
    ...need(subjects, child(path, "subjects"), "subjects must contain at least one value"),
    ...each(subjects, child(path, "subjects"), validateSubject),
  ];
  if (!resourceRules?.length && !nonResourceRules?.length)
    errors.push(required(path, "at least one of resourceRules and nonResourceRules has to be non-empty"));
  return [
    ...errors,
    ...each(resourceRules, child(path, "resourceRules"), validateResourceRule),
    ...each(nonResourceRules, child(path, "nonResourceRules"), validateNonResourceRule),
  ];
}

const kinds = { ServiceAccount: "serviceAccount", User: "user", Group: "group" } as const;

/** Only the field that belongs to the subject's kind may be set. */
function validateSubject(subject: Subject, path: string): FieldError[] {
  const kind: string = subject.kind ?? "";
  if (!Object.hasOwn(kinds, kind)) return [notSupported(child(path, "kind"), kind, ["Group", "ServiceAccount", "User"])];
  const own = kinds[kind as keyof typeof kinds]; // cast: the line above refuses other kinds
  const errors = subject[own]
    ? validatePart(subject, own, child(path, own))
    : [required(child(path, own), `${own} is required when subject kind is '${kind}'`)];
  for (const [other, field] of Object.entries(kinds)) {
    if (field !== own && subject[field])
      errors.push(forbiddenField(child(path, field), `${field} is forbidden when subject kind is not '${other}'`));
  }
  return errors;
}

function validatePart(subject: Subject, field: (typeof kinds)[keyof typeof kinds], path: string): FieldError[] {
  const name = subject[field]?.name;
  const errors = need(name, child(path, "name"));
  if (field !== "serviceAccount") return errors;
  if (name && name !== "*") errors.push(...dns1123Subdomain(name, child(path, "name")));
  const namespace = subject.serviceAccount?.namespace;
  const at = child(path, "namespace");
  return [...errors, ...(namespace ? dns1123Label(namespace, at) : [required(at, "must specify namespace for service account")])];
}

const verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

const namespaceText = "each member of this list must be '*' or a DNS-1123 label; ";

function validateResourceRule(rule: ResourcePolicyRule, path: string): FieldError[] {
  const { namespaces = [] } = rule;
  const errors = [
    ...validateVerbs(rule.verbs, child(path, "verbs")),
    ...list(rule.apiGroups, child(path, "apiGroups"), "resource rules must supply at least one api group", "api groups"),
    ...list(rule.resources, child(path, "resources"), "resource rules must supply at least one resource", "resources"),
  ];
  const at = child(path, "namespaces");
  if (namespaces.length === 0 && !rule.clusterScope)
    errors.push(required(at, "resource rules that are not cluster scoped must supply at least one namespace"));
  else if (namespaces.includes("*")) errors.push(...alone(namespaces, at, "namespaces"));
  else
    errors.push(
      ...each(namespaces, at, (namespace, own) =>
        saying(
          dns1123LabelProblems(namespace).map((message) => `${namespaceText}${message}`),
          namespace,
          own,
        ),
      ),
    );
  return errors;
}

/** Resource verbs are the only valid ones, also in non-resource rules. */
function validateVerbs(given: readonly string[] | undefined, path: string): FieldError[] {
  const errors = list(given, path, "verbs must contain at least one value", "verbs");
  if (!given?.length || given.includes("*") || given.every((verb) => verbs.includes(verb))) return errors;
  return [...errors, notSupported(path, given, verbs)];
}

function validateNonResourceRule(rule: NonResourcePolicyRule, path: string): FieldError[] {
  const at = child(path, "nonResourceURLs");
  return [
    ...validateVerbs(rule.verbs, child(path, "verbs")),
    ...list(rule.nonResourceURLs, at, "nonResourceURLs must contain at least one value", "non-resource URLs"),
    ...(rule.nonResourceURLs?.includes("*") ? [] : each(rule.nonResourceURLs, at, validateUrlPath)),
  ];
}

function list(values: readonly string[] | undefined, path: string, missing: string, what: string): FieldError[] {
  return [...need(values, path, missing), ...alone(values ?? [], path, what)];
}

function alone(values: readonly string[], path: string, what: string): FieldError[] {
  const hasOthers = values.length > 1 && values.includes("*");
  return hasOthers ? [invalidValue(path, values, `if '*' is present, must not specify other ${what}`)] : [];
}

function validateUrlPath(url: string, path: string): FieldError[] {
  if (url === "") return [invalidValue(path, url, "must not be empty")];
  if (url === "/") return [];
  const stars = url.split("*").length - 1;
  const rules: readonly [boolean, string][] = [
    [!url.startsWith("/"), "must start with slash"],
    [url.includes(" "), "must not contain white-space"],
    [url.includes("//"), "must not contain double slash"],
    [stars > 1 || (stars === 1 && !url.endsWith("/*")), "wildcard can only do suffix matching"],
  ];
  const first = rules.find(([wrong]) => wrong); // like upstream, no more than one
  return first === undefined ? [] : [invalidValue(path, url, first[1])];
}
