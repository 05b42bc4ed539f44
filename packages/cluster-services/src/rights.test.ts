import assert from "node:assert/strict";
import { test } from "node:test";
import type { PolicyRule } from "@coxswain/apimachinery/objects/schema/kinds/rbac/v1";
import type { PartDefinition } from "./part.ts";
import { parts } from "./parts.ts";
import { rightsOf, servicesGroup } from "./rights.ts";

const lease = { leaseNamespace: "kube-system", leaseName: "coxswain-services" };
const load = () => Promise.reject(new Error("not to be loaded"));
const nodePart: PartDefinition = {
  name: "services",
  runs: "node",
  onByDefault: true,
  rights: { cluster: [{ apiGroups: [""], resources: ["services"], verbs: ["list", "watch"] }] },
  load,
};
const oncePart: PartDefinition = {
  name: "volumes",
  runs: "once",
  onByDefault: true,
  rights: { namespaced: { "kube-system": [{ apiGroups: [""], resources: ["configmaps"], verbs: ["get"] }] } },
  load,
};
const namesOf = (parts: readonly PartDefinition[]): string[] =>
  rightsOf(parts, lease).map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ""}/${metadata.name}`);

test("a role and a binding for each part, where its rules apply", () => {
  assert.deepEqual(namesOf([nodePart, oncePart]), [
    "ClusterRole /coxswain-services",
    "ClusterRoleBinding /coxswain-services",
    "Role kube-system/coxswain-services",
    "RoleBinding kube-system/coxswain-services",
    "ClusterRole /coxswain-services:services",
    "ClusterRoleBinding /coxswain-services:services",
    "Role kube-system/coxswain-services:volumes",
    "RoleBinding kube-system/coxswain-services:volumes",
  ]);
});

test("a namespace of a part comes before the role in it", () => {
  const part: PartDefinition = { ...oncePart, runs: "node", rights: { namespaces: ["own"], namespaced: { own: [] } } };
  assert.deepEqual(namesOf([part]).slice(2), [
    "Namespace /own",
    "Role own/coxswain-services:volumes",
    "RoleBinding own/coxswain-services:volumes",
  ]);
});

test("further objects of a part come last", () => {
  const view = { apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", metadata: { name: "view" } };
  assert.equal(namesOf([{ ...nodePart, rights: { ...nodePart.rights, others: [view] } }]).at(-1), "ClusterRole /view");
});

test("no part may write leases that others rely on", () => {
  const isLease = ({ resources = [], resourceNames }: PolicyRule): boolean =>
    resources.includes("leases") && resourceNames === undefined;
  for (const { name, rights } of parts) {
    assert.ok(!(rights.cluster ?? []).some(isLease), name);
    for (const [namespace, rules] of Object.entries(rights.namespaced ?? {}))
      if (rules.some(isLease)) assert.ok(rights.namespaces?.includes(namespace), `${name}: leases in ${namespace}`);
  }
});

test("the process may report events, and keep its lease, by its name but for its creation", () => {
  const rulesOf = (kind: string) =>
    rightsOf([oncePart], lease).flatMap((one) =>
      one.kind === kind && one.metadata.name === "coxswain-services" ? [(one as { rules?: PolicyRule[] }).rules] : [],
    );
  assert.deepEqual(rulesOf("ClusterRole"), [[{ apiGroups: [""], resources: ["events"], verbs: ["create", "patch"] }]]);
  const leases = { apiGroups: ["coordination.k8s.io"], resources: ["leases"] };
  assert.deepEqual(rulesOf("Role"), [
    [
      { ...leases, resourceNames: ["coxswain-services"], verbs: ["get", "update"] },
      { ...leases, verbs: ["create"] },
    ],
  ]);
});

test("no right to the lease where no part runs once", () => {
  assert.deepEqual(namesOf([nodePart]).slice(0, 3), [
    "ClusterRole /coxswain-services",
    "ClusterRoleBinding /coxswain-services",
    "ClusterRole /coxswain-services:services",
  ]);
});

test("no part asks for all verbs, all resources or roles", () => {
  for (const { name, rights } of parts) {
    for (const rule of [...(rights.cluster ?? []), ...Object.values(rights.namespaced ?? {}).flat()]) {
      const words = [...rule.verbs, ...(rule.apiGroups ?? []), ...(rule.resources ?? [])];
      for (const word of ["*", "escalate", "bind", "impersonate"]) assert.ok(!words.includes(word), `${name}: ${word}`);
    }
  }
});

test("bindings name the group of the certificates", () => {
  const bindings = rightsOf([nodePart, oncePart], lease).filter(({ kind }) => kind?.endsWith("Binding"));
  assert.equal(bindings.length, 4);
  for (const binding of bindings) {
    assert.deepEqual((binding as unknown as { subjects: unknown }).subjects, [
      { apiGroup: "rbac.authorization.k8s.io", kind: "Group", name: servicesGroup },
      { kind: "ServiceAccount", name: "coxswain-services", namespace: "kube-system" },
    ]);
  }
});
