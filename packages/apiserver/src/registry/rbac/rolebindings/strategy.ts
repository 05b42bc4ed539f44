import {
  child,
  type FieldError,
  index,
  invalidValue,
  notSupported,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { goStruct } from "@coxswain/apimachinery/objects/schema/go/go-print";
import type { ClusterRole, RoleBinding, Subject } from "@coxswain/apimachinery/objects/schema/kinds/rbac/v1";
import type { CatalogueConfig } from "../../config.ts";
import { dns1123SubdomainProblems } from "../../field-checks.ts";
import type { Strategy, StrategyContext } from "../../generic/strategy.ts";
import { rbacGroup, refuseUncovered } from "../escalation.ts";
import { changesOnlyGcFields } from "../gc-fields.ts";
import { pathSegmentNameProblems } from "../names.ts";

/** Role bindings of both scopes. Source: pkg/registry/rbac/rolebinding, pkg/apis/rbac/validation */
export function newBindingStrategy(config: Pick<CatalogueConfig, "services">, namespaced: boolean): Strategy<RoleBinding> {
  return {
    namespaceScoped: namespaced,
    allowCreateOnUpdate: true,
    allowUnconditionalUpdate: true,
    validateName: pathSegmentNameProblems,
    validate: (next) => validateBinding(next, namespaced),
    validateUpdate(next, current) {
      const errors = validateBinding(next, namespaced);
      if (!semanticEqual(next.roleRef, current.roleRef))
        errors.push(invalidValue("roleRef", goStruct("rbac/v1.RoleRef", next.roleRef), "cannot change roleRef"));
      return errors;
    },
    async beginCreate(next, ctx) {
      await refuseBinding(config, next, ctx, namespaced);
      return undefined;
    },
    async beginUpdate(next, current, ctx) {
      if (!changesOnlyGcFields(next, current)) await refuseBinding(config, next, ctx, namespaced);
      return undefined;
    },
  };
}

/**
 * Binding a role requires the verb `bind` on it or all of its permissions.
 * @throws NotFound when the role does not exist; Forbidden
 * Source: pkg/registry/rbac/rolebinding/policybased/storage.go
 */
async function refuseBinding(
  config: Pick<CatalogueConfig, "services">,
  binding: RoleBinding,
  ctx: StrategyContext,
  namespaced: boolean,
): Promise<void> {
  const user = ctx.user;
  if (!user || user.groups.includes("system:masters")) return;
  const services = config.services();
  if (services.authorize === undefined) return;
  const { kind, name } = binding.roleRef;
  const namespace = binding.metadata.namespace ?? "";
  const may = await services.authorize({
    user,
    verb: "bind",
    isResourceRequest: true,
    namespace,
    group: rbacGroup,
    version: "*",
    resource: kind === "Role" ? "roles" : "clusterroles",
    subresource: "",
    name,
    path: "",
  });
  if (may.decision === "allow") return;
  const store = services.store(rbacGroup, kind === "Role" ? "roles" : "clusterroles");
  // A missing role is an error: it could be created later with any permissions.
  const role = (await store.get(kind === "Role" ? namespace : "", name, { minimumRevision: 0 })).object<ClusterRole>();
  const resource = namespaced ? "rolebindings" : "clusterrolebindings";
  await refuseUncovered(config, user, { resource, namespace, name: binding.metadata.name ?? "" }, role.rules ?? []);
}

function validateBinding(binding: RoleBinding, namespaced: boolean): FieldError[] {
  const errors: FieldError[] = [];
  const { apiGroup = "", kind = "", name = "" } = binding.roleRef ?? {};
  if (apiGroup !== rbacGroup) errors.push(notSupported("roleRef.apiGroup", apiGroup, [rbacGroup]));
  const kinds = namespaced ? ["Role", "ClusterRole"] : ["ClusterRole"];
  if (!kinds.includes(kind)) errors.push(notSupported("roleRef.kind", kind, kinds));
  if (name === "") errors.push(required("roleRef.name", ""));
  else for (const message of pathSegmentNameProblems(name)) errors.push(invalidValue("roleRef.name", name, message));
  for (const [i, subject] of (binding.subjects ?? []).entries())
    errors.push(...validateSubject(subject, namespaced, index("subjects", i)));
  return errors;
}

function validateSubject(subject: Subject, namespaced: boolean, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (!subject.name) errors.push(required(child(path, "name"), ""));
  switch (subject.kind) {
    case "ServiceAccount":
      if (subject.name)
        for (const message of dns1123SubdomainProblems(subject.name))
          errors.push(invalidValue(child(path, "name"), subject.name, message));
      if (subject.apiGroup) errors.push(notSupported(child(path, "apiGroup"), subject.apiGroup, [""]));
      if (!namespaced && !subject.namespace) errors.push(required(child(path, "namespace"), ""));
      break;
    case "User":
    case "Group":
      if (subject.apiGroup !== rbacGroup) errors.push(notSupported(child(path, "apiGroup"), subject.apiGroup ?? "", [rbacGroup]));
      break;
    default:
      errors.push(notSupported(child(path, "kind"), subject.kind ?? "", ["ServiceAccount", "User", "Group"]));
  }
  return errors;
}
