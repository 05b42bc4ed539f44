import { done, type Result } from "@coxswain/apimachinery/controller/controller";
import { isConflict, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { type NodeLifecycleContext, patchNode } from "./context.ts";
import { withConditionTaints } from "./taints.ts";

/** Sets the NoSchedule taints that correspond to the node's conditions. */
export async function taintByConditions(ctx: NodeLifecycleContext, name: ObjectKey, signal: AbortSignal): Promise<Result> {
  const node = ctx.nodes.lister.get(name);
  if (node === undefined) return done;
  const taints = withConditionTaints(node, ctx.clock.now());
  const labels = legacyLabels(node);
  if (taints === undefined && labels === undefined) return done;
  try {
    await patchNode(ctx, node, { taints, labels }, signal);
  } catch (err) {
    if (!isConflict(err) && !isNotFound(err)) throw err; // the concurrent change enqueues the node again
  }
  return done;
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
