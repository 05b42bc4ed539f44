import type { Client } from "@coxswain/apimachinery/client/client";
import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import { isContained } from "@coxswain/apimachinery/objects/meta/contained";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import {
  clusterRoleBindings,
  clusterRoles,
  configMaps,
  roleBindings,
  roles,
  secrets,
  serviceAccounts,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";

const resources: Readonly<Record<string, ResourceRef>> = {
  ClusterRole: clusterRoles,
  ClusterRoleBinding: clusterRoleBindings,
  Role: roles,
  RoleBinding: roleBindings,
  ConfigMap: configMaps,
  Secret: secrets,
  ServiceAccount: serviceAccounts,
};

const fieldManager = "coxswain";
const requestMs = 30_000;

const refOf = ({ kind = "" }: KubeObject): ResourceRef => resources[kind]!;
const targetOf = ({ metadata: { namespace, name = "" } }: KubeObject) => ({ namespace, name });

/** `ConfigMap kube-system/kubeadm-config` */
const shown = ({ kind, metadata: { namespace, name } }: KubeObject): string =>
  `${kind} ${namespace === undefined ? "" : `${namespace}/`}${name}`;

/**
 * One line for each object that is missing or differs; without a client, and while the API server does not respond, for all
 * objects.
 */
export async function missingObjects(client: Client | undefined, objects: readonly KubeObject[]): Promise<string[]> {
  if (client === undefined) return objects.map((object) => `create ${shown(object)}`);
  const lines = await Promise.all(
    objects.map(async (object) => {
      const signal = AbortSignal.timeout(requestMs);
      try {
        const stored = await client.get<KubeObject>(refOf(object), targetOf(object), { signal });
        return isContained(object, stored) ? [] : [`change ${shown(object)}`];
      } catch (err) {
        if (isNotFound(err) || !(err instanceof StatusError)) return [`create ${shown(object)}`];
        throw err;
      }
    }),
  );
  return lines.flat();
}

/** Writes the objects in this order; roles must precede their bindings. */
export async function writeObjects(client: Client, objects: readonly KubeObject[]): Promise<void> {
  for (const object of objects) {
    const signal = AbortSignal.timeout(requestMs);
    await client.patch(refOf(object), targetOf(object), { type: "apply", body: object }, { signal, fieldManager, force: true });
  }
}
