import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { SubresourceCall } from "../../generic/resource.ts";
import { createPodBinding } from "../pods/binding.ts";

/** POST /api/v1/namespaces/{ns}/bindings: legacy form of pods/binding; metadata.name is the name of the pod. */
export function createBinding(call: SubresourceCall): Promise<KubeObject> {
  return createPodBinding({ ...call, name: call.body?.metadata.name ?? "" });
}
