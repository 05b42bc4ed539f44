import type { Client } from "@coxswain/apimachinery/client/client";
import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { RuntimeClass } from "@coxswain/apimachinery/objects/schema/kinds/node/v1";
import { runtimeClasses } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { NodePod } from "../pod/pod.ts";

/**
 * The runtime handler of the Pod's RuntimeClass; `""` selects the default handler.
 * @throws Error when the RuntimeClass does not exist
 * Source: pkg/kubelet/runtimeclass/runtimeclass_manager.go
 */
export async function runtimeHandler(client: Client | undefined, pod: NodePod): Promise<string> {
  const name = pod.spec.runtimeClassName;
  if (name === undefined || name === "" || client === undefined) return "";
  try {
    return (await client.get<RuntimeClass>(runtimeClasses, { name })).handler;
  } catch (err) {
    if (isNotFound(err)) throw new Error(`failed to get sandbox runtime: no runtime for ${JSON.stringify(name)} is configured`);
    throw err;
  }
}
