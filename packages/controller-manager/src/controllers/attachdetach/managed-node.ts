import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

/** Whether attaching is left to the control plane for this node. */
export function isManaged({ metadata }: Node): boolean {
  return metadata.annotations?.["volumes.kubernetes.io/controller-managed-attach-detach"] !== undefined;
}
