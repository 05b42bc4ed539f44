import type { Status } from "@coxswain/apimachinery/objects/meta/types";
import type { Binding } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { SubresourceCall } from "../../generic/resource.ts";
import { createPodBinding } from "../pods/binding.ts";

/** POST /api/v1/namespaces/{ns}/bindings: legacy form of pods/binding; metadata.name is the name of the pod. */
export function createBinding(call: SubresourceCall<Binding>): Promise<Status> {
  return createPodBinding({ ...call, name: call.body?.metadata.name ?? "" });
}
