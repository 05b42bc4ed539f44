/**
 * Subjects of v1alpha1 have an apiVersion instead of the group, and the user `*` means all authenticated users.
 * Source: pkg/apis/rbac/v1alpha1/{conversion,defaults}.go
 */
import { parseGroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Subject } from "@coxswain/apimachinery/objects/schema/kinds/rbac/v1";
import type { Subject as OldSubject } from "@coxswain/apimachinery/objects/schema/kinds/rbac/v1alpha1";
import { group } from "./defaults.ts";

export const bindingFromV1alpha1 = eachSubject(({ apiVersion = "", ...rest }: OldSubject): Subject => {
  const { kind, name } = rest;
  if (kind === "ServiceAccount") return rest;
  if (kind !== "User" && kind !== "Group") return { ...rest, apiGroup: parseGroupVersion(apiVersion)?.group ?? "" };
  if (kind === "User" && name === "*") return { ...rest, kind: "Group", apiGroup: group, name: "system:authenticated" };
  return { ...rest, apiGroup: group };
});

export const bindingToV1alpha1 = eachSubject(({ apiGroup = "", ...rest }: Subject): OldSubject => {
  const { kind } = rest;
  if (kind === "ServiceAccount" && apiGroup === "") return { ...rest, apiVersion: "v1" };
  if ((kind === "User" || kind === "Group") && apiGroup === group) return { ...rest, apiVersion: `${group}/v1alpha1` };
  return { ...rest, apiVersion: apiGroup === "" ? "" : `${apiGroup}/` };
});

function eachSubject<From, To>(change: (subject: From) => To): (object: KubeObject & { subjects?: From[] }) => KubeObject {
  return (object) => {
    const { subjects } = object;
    if (subjects === undefined) return object;
    const changed: KubeObject & { subjects: To[] } = { ...object, subjects: subjects.map(change) };
    return changed;
  };
}
