import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type {
  ClusterRole,
  ClusterRoleBinding,
  PolicyRule,
  Role,
  RoleBinding,
} from "@coxswain/apimachinery/objects/schema/kinds/rbac/v1";
import type { PartDefinition, PartRights } from "./part.ts";

/** Group of the certificates of coxswain-services; their common name is `system:coxswain-services:<node>`. */
export const servicesGroup = "system:coxswain-services";

const api = "rbac.authorization.k8s.io";
const subjects = [
  { apiGroup: api, kind: "Group", name: servicesGroup },
  // For a DaemonSet.
  { kind: "ServiceAccount", name: "coxswain-services", namespace: "kube-system" },
];

/** What the process itself needs: its lease and events. */
const ownRules: readonly PolicyRule[] = [{ apiGroups: [""], resources: ["events"], verbs: ["create", "patch"] }];
const leaseRules = (name: string): readonly PolicyRule[] => [
  { apiGroups: ["coordination.k8s.io"], resources: ["leases"], resourceNames: [name], verbs: ["get", "update"] },
  // A name cannot restrict creation.
  { apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["create"] },
];

interface RightsOptions {
  readonly leaseNamespace: string;
  readonly leaseName: string;
}

/** Pure: the RBAC objects that the chosen parts need: a role and a binding for the process and for each part, and their namespaces. */
export function rightsOf(parts: readonly PartDefinition[], { leaseNamespace, leaseName }: RightsOptions): KubeObject[] {
  const own: PartRights = {
    cluster: ownRules,
    ...(parts.some(({ runs }) => runs === "once") && { namespaced: { [leaseNamespace]: leaseRules(leaseName) } }),
  };
  const all = [
    { name: "coxswain-services", rights: own },
    ...parts.map(({ name, rights }) => ({ name: partRole(name), rights })),
  ];
  return all.flatMap(({ name, rights }) => [
    ...(rights.namespaces ?? []).map((own) => ({ apiVersion: "v1", kind: "Namespace", metadata: { name: own } })),
    ...(rights.cluster === undefined ? [] : clusterWide(name, rights.cluster)),
    ...Object.entries(rights.namespaced ?? {}).flatMap(([namespace, rules]) => inNamespace(namespace, name, rules)),
    ...(rights.others ?? []),
  ]);
}

const partRole = (name: string): string => `coxswain-services:${name}`;

function clusterWide(name: string, rules: readonly PolicyRule[]): KubeObject[] {
  const apiVersion = `${api}/v1`;
  const role: ClusterRole = { apiVersion, kind: "ClusterRole", metadata: { name }, rules: [...rules] };
  const roleRef = { apiGroup: api, kind: "ClusterRole", name };
  const binding: ClusterRoleBinding = { apiVersion, kind: "ClusterRoleBinding", metadata: { name }, subjects, roleRef };
  return [role, binding];
}

function inNamespace(namespace: string, name: string, rules: readonly PolicyRule[]): KubeObject[] {
  const apiVersion = `${api}/v1`;
  const metadata = { namespace, name };
  const role: Role = { apiVersion, kind: "Role", metadata, rules: [...rules] };
  const binding: RoleBinding = {
    apiVersion,
    kind: "RoleBinding",
    metadata,
    subjects,
    roleRef: { apiGroup: api, kind: "Role", name },
  };
  return [role, binding];
}
