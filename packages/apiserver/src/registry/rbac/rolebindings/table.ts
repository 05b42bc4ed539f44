import type { RoleBinding, Subject } from "@coxswain/apimachinery/objects/schema/kinds/rbac/v1";
import { age, tableOf } from "../../cells.ts";

export const bindingTable = tableOf<RoleBinding>("rolebindings", (binding, ages) => {
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
});
