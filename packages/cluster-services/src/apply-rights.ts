import type { Client } from "@coxswain/apimachinery/client/client";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import {
  clusterRoleBindings,
  clusterRoles,
  namespaces,
  roleBindings,
  roles,
} from "@coxswain/apimachinery/schema/kinds/resources";

const resources = {
  Namespace: namespaces,
  ClusterRole: clusterRoles,
  ClusterRoleBinding: clusterRoleBindings,
  Role: roles,
  RoleBinding: roleBindings,
};

/**
 * Writes RBAC objects and their namespaces by server-side apply; the client needs the rights that it gives.
 * @param rights those of `rightsOf`
 * @returns the kinds and names, in the form of kubectl
 * @throws errors of the API server, at the first object that it refuses
 */
export async function applyRights(client: Client, rights: readonly KubeObject[], signal: AbortSignal): Promise<string[]> {
  const names: string[] = [];
  for (const object of rights) {
    const ref = resources[object.kind as keyof typeof resources];
    const { namespace, name = "" } = object.metadata;
    const body = { type: "apply", body: object } as const;
    await client.patch(ref, { namespace, name }, body, { signal, fieldManager: "coxswain-services", force: true });
    names.push(`${ref.resource.slice(0, -1)}${ref.group === "" ? "" : `.${ref.group}`}/${name}`);
  }
  return names;
}
