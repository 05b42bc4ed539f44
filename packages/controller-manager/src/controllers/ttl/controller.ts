import { type Controller, done, type Result } from "@coxswain/apimachinery/controller/controller";
import { enqueueSelf } from "@coxswain/apimachinery/controller/sources";
import { isNotFound } from "@coxswain/apimachinery/errors/predicates";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import type { ObjectKey } from "@coxswain/apimachinery/meta/object-key";
import type { Node } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { nodes } from "@coxswain/apimachinery/schema/kinds/resources";
import type { ControllerContext } from "../../controller-context.ts";
import { defineController } from "../../define-controller.ts";
import { type ClusterSize, newClusterSize } from "./cluster-size.ts";

/**
 * ttl-controller: annotates nodes with the time for which they may cache Secrets and ConfigMaps, which grows with the
 * cluster size. A changed value is written when the node changes next.
 * Watches and patches Nodes.
 * Source: pkg/controller/ttl/ttl_controller.go
 */
export function newTtlController(base: ControllerContext): Controller {
  const informer = base.informers.for<Node>(nodes);
  const size = newClusterSize();
  const ctx: TtlContext = { ...base, nodes: informer, size };
  // Registered before the controller's own handler, so that an added node is counted before it is annotated.
  informer.addHandler({ added: () => size.added(), deleted: () => size.removed() });
  return defineController(ctx, {
    name: "ttlcontroller",
    sources: [enqueueSelf(informer)],
    reconcile,
    workers: 5,
  });
}

interface TtlContext extends ControllerContext {
  readonly nodes: SharedInformer<Node>;
  readonly size: ClusterSize;
}

export const ttlAnnotation = "node.alpha.kubernetes.io/ttl";

async function reconcile(ctx: TtlContext, name: ObjectKey, signal: AbortSignal): Promise<Result> {
  const node = ctx.nodes.lister.get(name);
  const wanted = String(ctx.size.ttlSeconds);
  if (node === undefined || node.metadata.annotations?.[ttlAnnotation] === wanted) return done;
  const body = { metadata: { annotations: { [ttlAnnotation]: wanted } } };
  await ctx.client.patch(nodes, { name }, { type: "strategic", body }, { signal }).catch((err) => {
    if (!isNotFound(err)) throw err;
  });
  return done;
}
