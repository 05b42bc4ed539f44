import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { Lease } from "@coxswain/apimachinery/objects/schema/kinds/coordination/v1";
import type { Node, Pod, Taint } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { leases, nodes, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { ControllerContext } from "../../controller-context.ts";
import { podsByNode } from "../../pods/pods-by-node.ts";
import type { EvictionQueue } from "./eviction-queue.ts";
import type { NodeHealth } from "./health.ts";
import { type NodeLifecycleMetrics, newNodeLifecycleMetrics } from "./metrics.ts";
import type { ZoneState } from "./zone-eviction-rate.ts";

/** Dependencies and state shared by the parts of the controller: node health and eviction queues. */
export interface NodeLifecycleContext extends ControllerContext {
  readonly nodes: SharedInformer<Node>;
  readonly pods: SharedInformer<Pod>;
  /** Pods bound to a node. */
  readonly podsOn: (node: string) => Pod[];
  readonly leases: SharedInformer<Lease>;
  readonly metrics: NodeLifecycleMetrics;
  readonly health: Map<string, NodeHealth>;
  /** Eviction queues by zone. */
  readonly evictions: Map<string, EvictionQueue>;
  /** Without the taint manager: nodes whose Pods were deleted; further Pods on them are deleted at once. */
  readonly evicted: Set<string>;
  readonly zoneStates: Map<string, ZoneState>;
  /** Nodes for which marking Pods as not ready failed. */
  readonly marksToRetry: Set<string>;
  allFullyDisrupted: boolean;
}

export function newNodeLifecycleContext(base: ControllerContext): NodeLifecycleContext {
  const podInformer = base.informers.for<Pod>(pods);
  return {
    ...base,
    nodes: base.informers.for<Node>(nodes),
    pods: podInformer,
    podsOn: podsByNode(podInformer),
    leases: base.informers.for<Lease>(leases),
    metrics: newNodeLifecycleMetrics(base.registry),
    health: new Map(),
    evictions: new Map(),
    evicted: new Set(),
    zoneStates: new Map(),
    marksToRetry: new Set(),
    allFullyDisrupted: false,
  };
}

/** Merge patch with the node's resourceVersion: fails with Conflict when the node changed since it was read. */
export async function patchNode(
  { client }: ControllerContext,
  { metadata }: Node,
  { taints, labels }: { taints?: Taint[] | undefined; labels?: Record<string, string> | undefined },
  signal: AbortSignal,
): Promise<void> {
  const { name = "", resourceVersion } = metadata;
  const body = {
    metadata: { resourceVersion, ...(labels === undefined ? {} : { labels }) },
    ...(taints === undefined ? {} : { spec: { taints: taints.length === 0 ? null : taints } }),
  };
  await client.patch(nodes, { name }, { type: "merge", body }, { readsMetadataOnly: true, signal });
}

/** Deletes a Pod by uid, so that a newer Pod of the same name is kept; a missing one is ignored. */
export async function deletePod({ client }: ControllerContext, { metadata }: Pod, signal: AbortSignal): Promise<void> {
  const { namespace, name = "", uid } = metadata;
  const preconditions = uid === undefined ? {} : { preconditions: { uid } };
  await client.delete(pods, { namespace, name }, { ...preconditions, signal }).catch((err) => {
    if (!isNotFound(err)) throw err;
  });
}

/** Records an Event on the node. */
export function nodeEvent(ctx: ControllerContext, { metadata }: Pick<Node, "metadata">, reason: string, message: string): void {
  const { name = "", uid } = metadata;
  const node = { apiVersion: "v1", kind: "Node", name, ...(uid === undefined ? {} : { uid }) };
  ctx.recorder.event(node, "Normal", reason, `Node ${name} ${message}`);
}
