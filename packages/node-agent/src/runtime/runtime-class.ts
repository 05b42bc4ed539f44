import type { Client } from "@coxswain/apimachinery/client/client";
import { isNotFound } from "@coxswain/apimachinery/errors/predicates";
import type { RuntimeClass } from "@coxswain/apimachinery/schema/kinds/node/v1";
import { runtimeClasses } from "@coxswain/apimachinery/schema/kinds/resources";
import type { NodePod } from "../pods/pod.ts";

/**
 * The runtime's name for the class that a Pod asks for; `""` is the runtime's usual one.
 * @throws Error when there is no such class
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
