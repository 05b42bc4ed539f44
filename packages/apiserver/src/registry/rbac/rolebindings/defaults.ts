import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type { RoleBinding, Subject } from "@coxswain/apimachinery/schema/kinds/rbac/v1";

const group = "rbac.authorization.k8s.io";

/** Source: pkg/apis/rbac/v1/defaults.go */
export function defaultBinding(object: KubeObject): void {
  const binding = object as RoleBinding;
  binding.roleRef ??= {} as RoleBinding["roleRef"];
  binding.roleRef.apiGroup ||= group;
  for (const subject of binding.subjects ?? []) {
    if (subject.apiGroup) continue;
    if (subject.kind === "User" || subject.kind === "Group") subject.apiGroup = group;
  }
}

/** v1alpha1 subjects have an apiVersion in place of the group. Source: pkg/apis/rbac/v1alpha1/conversion.go */
interface SubjectV1alpha1 extends Omit<Subject, "apiGroup"> {
  apiVersion?: string;
}

export function bindingToV1(object: KubeObject): KubeObject {
  const binding = { ...object, apiVersion: `${group}/v1` } as RoleBinding;
  binding.subjects = (binding.subjects ?? []).map((subject) => {
    const { apiVersion = "", ...rest } = subject as SubjectV1alpha1;
    const converted: Subject = { ...rest };
    const given = (subject as Subject).apiGroup;
    converted.apiGroup =
      subject.kind === "ServiceAccount"
        ? ""
        : (given ?? (apiVersion.includes("/") ? (apiVersion.split("/")[0] as string) : group));
    if (converted.apiGroup === "") delete converted.apiGroup;
    // The old way to say "everybody who is logged in".
    if (subject.kind === "User" && subject.name === "*") return { kind: "Group", apiGroup: group, name: "system:authenticated" };
    return converted;
  });
  return binding;
}

export function bindingFromV1(object: KubeObject): KubeObject {
  const binding = { ...object, apiVersion: `${group}/v1alpha1` } as KubeObject & { subjects?: (Subject | SubjectV1alpha1)[] };
  binding.subjects = (binding.subjects ?? []).map((subject) => {
    const { apiGroup = "", ...rest } = subject as Subject;
    return { ...rest, apiVersion: apiGroup === "" ? "v1" : `${apiGroup}/v1alpha1` };
  });
  return binding;
}
