import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type { Node } from "@coxswain/apimachinery/schema/kinds/core/v1";

/** What a node can give is what it has, until it says otherwise. Source: pkg/apis/core/v1/defaults.go SetDefaults_NodeStatus */
export function defaultNode(object: KubeObject): void {
  const { status } = object as Node;
  if (status?.capacity && status.allocatable === undefined) status.allocatable = { ...status.capacity };
}
