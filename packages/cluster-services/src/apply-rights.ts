import type { Client } from "@coxswain/apimachinery/client/client";
import { isAlreadyExists } from "@coxswain/apimachinery/objects/errors/predicates";
import { isContained } from "@coxswain/apimachinery/objects/meta/contained";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import {
  clusterRoleBindings,
  clusterRoles,
  namespaces,
  roleBindings,
  roles,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { isKeyOf } from "@coxswain/apimachinery/process/narrowing/keys";

const resources = {
  Namespace: namespaces,
  ClusterRole: clusterRoles,
  ClusterRoleBinding: clusterRoleBindings,
  Role: roles,
  RoleBinding: roleBindings,
};

/**
 * Creates or updates RBAC objects and their namespaces where they are missing or differ; the client must hold the permissions
 * that it grants.
 * @param rights those of `rightsOf`
 * @returns the kinds and names, in the form of kubectl
 * @throws the first error of the API server, when the others of its kind have been answered
 */
export async function applyRights(client: Client, rights: readonly KubeObject[], signal: AbortSignal): Promise<string[]> {
  for (const kinds of waves) {
    const wave = rights.filter(({ kind = "" }) => kinds.includes(kind));
    const results = await Promise.allSettled(wave.map((object) => write(client, object, signal)));
    const failed = results.find((result) => result.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  }
  return rights.map((object) => {
    const ref = refOf(object);
    return `${ref.resource.slice(0, -1)}${ref.group === "" ? "" : `.${ref.group}`}/${object.metadata.name}`;
  });
}

/** Roles first: creating a binding requires the rights of its role, which therefore has to exist. */
const waves = [["Namespace"], ["ClusterRole", "Role"], ["ClusterRoleBinding", "RoleBinding"]];

function refOf({ kind }: KubeObject): ResourceRef {
  if (!isKeyOf(resources, kind)) throw new Error(`an object of kind ${kind} grants no rights`);
  return resources[kind];
}

/**
 * Creating an object is much cheaper for a newly started API server than applying it, and the start of a cluster waits for these
 * objects.
 */
async function write(client: Client, object: KubeObject, signal: AbortSignal): Promise<void> {
  const ref = refOf(object);
  const { namespace, name = "" } = object.metadata;
  try {
    await client.create(ref, object, { signal, fieldManager });
    return;
  } catch (err) {
    if (!isAlreadyExists(err)) throw err;
  }
  if (isContained(object, await client.get<KubeObject>(ref, { namespace, name }, { signal }))) return;
  await client.patch(ref, { namespace, name }, { type: "apply", body: object }, { signal, fieldManager, force: true });
}

const fieldManager = "coxswain-services";
