import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

const index = "spec.nodeName";

function nodeOf({ spec }: Pod): string[] {
  return spec.nodeName ? [spec.nodeName] : [];
}

/**
 * Adds the index to the informer.
 * @returns function from a node name to the Pods that are bound to it
 */
export function podsByNode(pods: SharedInformer<Pod>): (node: string) => Pod[] {
  pods.addIndex(index, nodeOf);
  return (node) => pods.lister.byIndex(index, node);
}
