import type { RoleBinding, Subject } from "@coxswain/apimachinery/objects/schema/kinds/rbac/v1";
import { age, ageColumn, nameColumn, tableOf, text, wide } from "../../cells.ts";

export const bindingTable = tableOf<RoleBinding>(
  [
    nameColumn,
    text(
      "Role",
      "RoleRef can reference a Role in the current namespace or a ClusterRole in the global namespace. If the RoleRef cannot be resolved, the Authorizer must return an error.",
    ),
    ageColumn,
    wide("Users", "Users in the roleBinding"),
    wide("Groups", "Groups in the roleBinding"),
    wide("ServiceAccounts", "ServiceAccounts in the roleBinding"),
  ],
  (binding, ages) => {
    const names = (kind: string, of: (subject: Subject) => string): string =>
      (binding.subjects ?? [])
        .filter((subject) => subject.kind === kind)
        .map(of)
        .join(", ");
    return [
      binding.metadata.name ?? "",
      `${binding.roleRef?.kind ?? ""}/${binding.roleRef?.name ?? ""}`,
      age(binding, ages),
      names("User", (subject) => subject.name),
      names("Group", (subject) => subject.name),
      names("ServiceAccount", (subject) => `${subject.namespace ?? ""}/${subject.name}`),
    ];
  },
);
