import type { Client } from "@coxswain/apimachinery/client/client";
import type { Plugin } from "../framework/extension-points.ts";
import { newDefaultBinder } from "./default-binder.ts";
import { newImageLocality } from "./image-locality.ts";
import { newNodeAffinity } from "./node-affinity.ts";
import { newNodeName } from "./node-name.ts";
import { newNodePorts } from "./node-ports.ts";
import { newNodeResourcesBalancedAllocation } from "./node-resources-balanced-allocation.ts";
import { newNodeResourcesFit } from "./node-resources-fit.ts";
import { newNodeUnschedulable } from "./node-unschedulable.ts";
import { newPrioritySort } from "./priority-sort.ts";
import { newTaintToleration } from "./taint-toleration.ts";

export interface PluginContext {
  readonly client: Client;
}

/** THE list: name in the configuration → constructor. */
export const plugins: Readonly<Record<string, (context: PluginContext) => Plugin>> = {
  PrioritySort: newPrioritySort,
  NodeUnschedulable: newNodeUnschedulable,
  NodeName: newNodeName,
  TaintToleration: newTaintToleration,
  NodeAffinity: newNodeAffinity,
  NodePorts: newNodePorts,
  NodeResourcesFit: newNodeResourcesFit,
  NodeResourcesBalancedAllocation: newNodeResourcesBalancedAllocation,
  ImageLocality: newImageLocality,
  DefaultBinder: ({ client }) => newDefaultBinder(client),
};

/** Known to upstream's 1.23 and not built yet; docs/compatibility.md says what follows from that. */
export const missingPlugins: readonly string[] = [
  "DefaultPreemption",
  "InterPodAffinity",
  "PodTopologySpread",
  "VolumeBinding",
  "VolumeRestrictions",
  "VolumeZone",
  "NodeVolumeLimits",
  "EBSLimits",
  "GCEPDLimits",
  "AzureDiskLimits",
  "CinderLimits",
  "SelectorSpread",
  "ServiceAffinity",
  "NodeLabel",
  "NodePreferAvoidPods",
];

/** Plugins of the default profile with the weight of their score. Source: apis/config/v1beta3/default_plugins.go */
export const defaultWeights: Readonly<Record<string, number>> = {
  NodeResourcesBalancedAllocation: 1,
  ImageLocality: 1,
  NodeResourcesFit: 1,
  NodeAffinity: 1,
  TaintToleration: 1,
};
