import type { Node } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { patchNode, type Room } from "./room.ts";
import { withConditionTaints } from "./taints.ts";

/**
 * Sets the NoSchedule taints that correspond to the node's conditions.
 * @throws Conflict, NotFound when the node changed or was deleted in the meantime
 */
export async function taintByConditions({ ctx, nodes: nodeInformer }: Room, name: string, signal: AbortSignal): Promise<void> {
  const node = nodeInformer.lister.get(name);
  if (node === undefined) return;
  const taints = withConditionTaints(node, ctx.clock.now());
  const labels = legacyLabels(node);
  if (taints !== undefined || labels !== undefined) await patchNode(ctx, node, { taints, labels }, signal);
}

/** The beta os and arch labels mirror the stable ones. Source: node_lifecycle_controller.go labelReconcileInfo */
function legacyLabels({ metadata }: Node): Record<string, string> | undefined {
  const changed: Record<string, string> = {};
  for (const name of ["os", "arch"]) {
    const value = metadata.labels?.[`kubernetes.io/${name}`];
    if (value !== undefined && metadata.labels?.[`beta.kubernetes.io/${name}`] !== value)
      changed[`beta.kubernetes.io/${name}`] = value;
  }
  return Object.keys(changed).length === 0 ? undefined : changed;
}
