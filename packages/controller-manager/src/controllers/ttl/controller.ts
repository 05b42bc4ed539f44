import { type Controller, done, type Result } from "@coxswain/apimachinery/controller/controller";
import { enqueueBy, type SourceQueue } from "@coxswain/apimachinery/controller/sources";
import type { InformerHandler, SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { keyOf, type ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { nodes } from "@coxswain/apimachinery/objects/schema/kinds/resources";
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
  const ctx: TtlContext = { ...base, nodes: base.informers.for<Node>(nodes), size: newClusterSize() };
  return defineController(ctx, {
    name: "ttlcontroller",
    sources: [enqueueBy(ctx.nodes, (queue) => nodeHandlers(ctx, queue))],
    reconcile,
    workers: 5,
  });
}

/** Counts a node before it is enqueued, so that it is annotated with the TTL of the new cluster size. */
function nodeHandlers({ size }: TtlContext, { enqueue }: SourceQueue): InformerHandler<Node> {
  return {
    added(node) {
      size.added();
      enqueue(keyOf(node));
    },
    updated: (_old, node) => enqueue(keyOf(node)),
    deleted(node) {
      size.removed();
      enqueue(keyOf(node));
    },
  };
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
