import { type Controller, done, newController, type Result } from "@coxswain/apimachinery/controller/controller";
import { enqueueSelf } from "@coxswain/apimachinery/controller/sources";
import { isNotFound } from "@coxswain/apimachinery/errors/predicates";
import type { Node } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { nodes } from "@coxswain/apimachinery/schema/kinds/resources";
import type { ControllerContext } from "../../controller-context.ts";
import { type ClusterSize, newClusterSize } from "./cluster-size.ts";

/**
 * ttl-controller: annotates nodes with the time for which they may cache Secrets and ConfigMaps, which grows with the
 * cluster size. A changed value is written when the node changes next.
 * Watches and patches Nodes.
 * Source: pkg/controller/ttl/ttl_controller.go
 */
export function newTtlController(ctx: ControllerContext): Controller {
  const informer = ctx.informers.for<Node>(nodes);
  const size = newClusterSize();
  // Registered before the controller's own handler, so that an added node is counted before it is annotated.
  informer.addHandler({ added: () => size.added(), deleted: () => size.removed() });
  return newController({
    name: "ttlcontroller",
    sources: [enqueueSelf(informer)],
    reconcile: (name, signal) => annotate(ctx, size, name, signal),
    workers: 5,
    log: ctx.log,
    clock: ctx.clock,
    metrics: ctx.queueMetrics,
  });
}

export const ttlAnnotation = "node.alpha.kubernetes.io/ttl";

async function annotate(ctx: ControllerContext, size: ClusterSize, name: string, signal: AbortSignal): Promise<Result> {
  const node = ctx.informers.for<Node>(nodes).lister.get(name);
  const wanted = String(size.ttlSeconds);
  if (node === undefined || node.metadata.annotations?.[ttlAnnotation] === wanted) return done;
  const body = { metadata: { annotations: { [ttlAnnotation]: wanted } } };
  await ctx.client.patch(nodes, { name }, { type: "strategic", body }, { signal }).catch((err) => {
    if (!isNotFound(err)) throw err;
  });
  return done;
}
