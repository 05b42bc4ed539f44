import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type { SubresourceCall } from "../../generic/subresource.ts";
import { createPodBinding } from "../pods/binding.ts";

/** POST /api/v1/namespaces/{ns}/bindings: the old way to bind the pod that the binding is named after. */
export function createBinding(call: SubresourceCall): Promise<KubeObject> {
  return createPodBinding({ ...call, name: call.body?.metadata.name ?? "" });
}
