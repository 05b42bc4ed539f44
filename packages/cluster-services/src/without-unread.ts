import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Endpoint, EndpointConditions, EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";

/**
 * An object without the fields that no part reads, for the informers' caches: every node keeps all EndpointSlices and Nodes. Such
 * an object must not be written back.
 */
export function withoutUnread(object: KubeObject): KubeObject {
  if (isSlice(object)) {
    const slice: EndpointSlice = { ...object, endpoints: (object.endpoints ?? []).map(endpointOf) };
    return slice;
  }
  if (isNode(object) && object.status !== undefined) {
    const { images: _, ...status } = object.status;
    const node: Node = { ...object, status };
    return node;
  }
  return object;
}

const isSlice = (object: KubeObject): object is EndpointSlice => object.kind === "EndpointSlice";
const isNode = (object: KubeObject): object is Node => object.kind === "Node";

/** Without its Pod, which is a third of it. */
function endpointOf({ targetRef: _, conditions, ...endpoint }: Endpoint): Endpoint {
  return { ...endpoint, ...(conditions !== undefined && { conditions: shared(conditions) }) };
}

const states = [undefined, true, false];
/** Each combination once: most endpoints have the same. */
const combinations: readonly EndpointConditions[] = states.flatMap((ready) =>
  states.flatMap((serving) =>
    states.map((terminating) => ({
      ...(ready !== undefined && { ready }),
      ...(serving !== undefined && { serving }),
      ...(terminating !== undefined && { terminating }),
    })),
  ),
);

const shared = ({ ready, serving, terminating }: EndpointConditions): EndpointConditions =>
  combinations.find((one) => one.ready === ready && one.serving === serving && one.terminating === terminating) ?? {};
