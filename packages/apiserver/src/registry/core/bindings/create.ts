import { badRequest } from "@coxswain/apimachinery/errors/status-error";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type { SubresourceCall } from "../../generic/subresource.ts";
import { createPodBinding } from "../pods/binding.ts";

/** POST /api/v1/namespaces/{ns}/bindings: the old way to bind the pod that the binding is named after. */
export function createBinding(call: SubresourceCall): Promise<KubeObject> {
  const name = call.body?.metadata.name ?? "";
  if (name === "") throw badRequest("name must be provided");
  return createPodBinding({ ...call, name });
}
