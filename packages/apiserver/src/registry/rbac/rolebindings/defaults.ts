import type { RoleBinding } from "@coxswain/apimachinery/objects/schema/kinds/rbac/v1";
import { emptyStruct } from "../../rules.ts";

export const group = "rbac.authorization.k8s.io";

/** Source: pkg/apis/rbac/v1/defaults.go */
export function defaultBinding(binding: RoleBinding): void {
  binding.roleRef ??= emptyStruct();
  binding.roleRef.apiGroup ||= group;
  for (const subject of binding.subjects ?? []) {
    if (subject.apiGroup) continue;
    if (subject.kind === "User" || subject.kind === "Group") subject.apiGroup = group;
  }
}
