/** Creates the system namespaces. Source: pkg/controlplane/controller.go */
import type { Client } from "@coxswain/apimachinery/client/client";
import { namespaces } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { ensure } from "./ensure.ts";

const systemNamespaces = ["kube-system", "kube-public", "kube-node-lease", "default"];

/** Creates the namespaces that are missing, one after the other. */
export async function ensureNamespaces(client: Client, signal?: AbortSignal): Promise<void> {
  for (const name of systemNamespaces) await ensure(client, namespaces, { metadata: { name } }, undefined, signal);
}
