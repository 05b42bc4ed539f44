import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import { forbiddenField, invalidValue, notSupported, required } from "@coxswain/apimachinery/errors/field-error";
import { child, index } from "@coxswain/apimachinery/errors/field-path";
import type { FlowSchema, PolicyRulesWithSubjects, Subject } from "@coxswain/apimachinery/schema/kinds/flowcontrol/v1beta2";
import { dns1123Label, dns1123Subdomain } from "../../field-checks.ts";
import type { Strategy } from "../../generic/strategy.ts";
import { statusStrategyOf, strategyOf } from "../../strategies.ts";

/** Source: pkg/registry/flowcontrol/flowschema/strategy.go, pkg/apis/flowcontrol/validation/validation.go */
export const flowSchemaStrategy: Strategy<FlowSchema> = strategyOf<FlowSchema>({
  namespaced: false,
  status: true,
  generation: true,
  allowUnconditionalUpdate: false,
  validate: (next) => validateFlowSchema(next),
});

export const flowSchemaStatusStrategy: Strategy<FlowSchema> = statusStrategyOf({ namespaced: false });

function validateFlowSchema(schema: FlowSchema): FieldError[] {
  const errors: FieldError[] = [];
  const { spec } = schema;
  const precedence = spec?.matchingPrecedence ?? 0;
  if (precedence <= 0) errors.push(invalidValue("spec.matchingPrecedence", precedence, "must be a positive value"));
  if (precedence > 10000) errors.push(invalidValue("spec.matchingPrecedence", precedence, "must not be greater than 10000"));
  if (precedence === 1 && schema.metadata.name !== "exempt") {
    errors.push(
      invalidValue("spec.matchingPrecedence", precedence, "only the schema named 'exempt' may have matchingPrecedence 1"),
    );
  }
  const method: string | undefined = spec?.distinguisherMethod?.type;
  if (spec?.distinguisherMethod && method !== "ByUser" && method !== "ByNamespace") {
    errors.push(notSupported("spec.distinguisherMethod", spec.distinguisherMethod, ["ByNamespace", "ByUser"]));
  }
  const level = spec?.priorityLevelConfiguration?.name ?? "";
  if (level === "") errors.push(required("spec.priorityLevelConfiguration.name", "must reference a priority level"));
  else errors.push(...dns1123Subdomain(level, "spec.priorityLevelConfiguration.name"));
  for (const [i, rule] of (spec?.rules ?? []).entries()) errors.push(...validateRule(rule, index("spec.rules", i)));
  return errors;
}

function validateRule(rule: PolicyRulesWithSubjects, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (!rule.subjects?.length) errors.push(required(child(path, "subjects"), "subjects must contain at least one value"));
  for (const [i, subject] of (rule.subjects ?? []).entries())
    errors.push(...validateSubject(subject, index(child(path, "subjects"), i)));
  if (!rule.resourceRules?.length && !rule.nonResourceRules?.length) {
    errors.push(required(path, "at least one of resourceRules and nonResourceRules has to be non-empty"));
  }
  for (const [i, resource] of (rule.resourceRules ?? []).entries()) {
    const at = index(child(path, "resourceRules"), i);
    if (!resource.verbs?.length) errors.push(required(child(at, "verbs"), "verbs must contain at least one value"));
    if (!resource.apiGroups?.length)
      errors.push(required(child(at, "apiGroups"), "resource rules must supply at least one api group"));
    if (!resource.resources?.length)
      errors.push(required(child(at, "resources"), "resource rules must supply at least one resource"));
    if (!resource.namespaces?.length && !resource.clusterScope) {
      errors.push(
        required(child(at, "namespaces"), "resource rules that are not cluster scoped must supply at least one namespace"),
      );
    }
  }
  for (const [i, nonResource] of (rule.nonResourceRules ?? []).entries()) {
    const at = index(child(path, "nonResourceRules"), i);
    if (!nonResource.verbs?.length) errors.push(required(child(at, "verbs"), "verbs must contain at least one value"));
    if (!nonResource.nonResourceURLs?.length)
      errors.push(required(child(at, "nonResourceURLs"), "nonResourceURLs must contain at least one value"));
  }
  return errors;
}

function validateSubject(subject: Subject, path: string): FieldError[] {
  const parts = { User: subject.user, Group: subject.group, ServiceAccount: subject.serviceAccount };
  const fields = { User: "user", Group: "group", ServiceAccount: "serviceAccount" } as const;
  if (!Object.hasOwn(parts, subject.kind))
    return [notSupported(child(path, "kind"), subject.kind, ["Group", "ServiceAccount", "User"])];
  const errors: FieldError[] = [];
  for (const [kind, part] of Object.entries(parts)) {
    const field = fields[kind as keyof typeof fields];
    if (kind === subject.kind && !part) {
      errors.push(required(child(path, field), `${field} is required when subject kind is '${kind}'`));
    } else if (kind !== subject.kind && part) {
      errors.push(forbiddenField(child(path, field), `${field} is forbidden when subject kind is not '${kind}'`));
    }
  }
  if (subject.kind === "User" && subject.user && !subject.user.name) errors.push(required(child(path, "user.name")));
  if (subject.kind === "Group" && subject.group && !subject.group.name) errors.push(required(child(path, "group.name")));
  if (subject.kind === "ServiceAccount" && subject.serviceAccount) {
    const { name, namespace } = subject.serviceAccount;
    if (!name) errors.push(required(child(path, "serviceAccount.name")));
    else if (name !== "*") errors.push(...dns1123Subdomain(name, child(path, "serviceAccount.name")));
    if (!namespace) errors.push(required(child(path, "serviceAccount.namespace"), "must specify namespace for service account"));
    else errors.push(...dns1123Label(namespace, child(path, "serviceAccount.namespace")));
  }
  return errors;
}
