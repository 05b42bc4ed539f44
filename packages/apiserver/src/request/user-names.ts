/** Well-known user and group names. Source: k8s.io/apiserver pkg/authentication/user/user.go, serviceaccount/util.go */
export {
  allAuthenticated,
  allUnauthenticated,
  anonymousName,
  privilegedGroup,
} from "@coxswain/apimachinery/serving/authentication/user";

export const nodesGroup = "system:nodes";
export const nodeUserPrefix = "system:node:";
const allServiceAccounts = "system:serviceaccounts";
export const apiserverUser = "system:apiserver";

const serviceAccountPrefix = "system:serviceaccount:";

/** `system:serviceaccount:<namespace>:<name>` */
export function serviceAccountUsername(namespace: string, name: string): string {
  return `${serviceAccountPrefix}${namespace}:${name}`;
}

/** The groups of a service account. */
export function serviceAccountGroups(namespace: string): string[] {
  return [allServiceAccounts, `${allServiceAccounts}:${namespace}`];
}

/** @returns undefined when the name is not that of a service account */
export function splitServiceAccountUsername(username: string): { namespace: string; name: string } | undefined {
  if (!username.startsWith(serviceAccountPrefix)) return undefined;
  const parts = username.slice(serviceAccountPrefix.length).split(":");
  const [namespace, name] = parts;
  if (parts.length !== 2 || !namespace || !name || !/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(namespace)) return undefined;
  return /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(name) ? { namespace, name } : undefined;
}

/** @returns the node's name when the user is a kubelet, by name and group */
export function nodeNameOf(user: { readonly name: string; readonly groups: readonly string[] }): string | undefined {
  if (!user.name.startsWith(nodeUserPrefix) || !user.groups.includes(nodesGroup)) return undefined;
  const name = user.name.slice(nodeUserPrefix.length);
  return name === "" ? undefined : name;
}
