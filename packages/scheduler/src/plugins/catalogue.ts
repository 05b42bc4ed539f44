import type { PluginArgs } from "../config/plugin-args.ts";
import type { Plugin } from "../framework/extension-points.ts";
import { newDefaultBinder } from "./default-binder.ts";
import { newDefaultPreemption } from "./default-preemption.ts";
import { newImageLocality } from "./image-locality.ts";
import { newInterPodAffinity } from "./inter-pod-affinity.ts";
import { newNodeAffinity } from "./node-affinity.ts";
import { newNodeName } from "./node-name.ts";
import { newNodePorts } from "./node-ports.ts";
import { newNodeResourcesBalancedAllocation } from "./node-resources-balanced-allocation.ts";
import { newNodeResourcesFit } from "./node-resources-fit.ts";
import { newNodeUnschedulable } from "./node-unschedulable.ts";
import type { PluginContext } from "./plugin-context.ts";
import { newPodTopologySpread } from "./pod-topology-spread.ts";
import { newPrioritySort } from "./priority-sort.ts";
import { newSelectorSpread } from "./selector-spread.ts";
import { newTaintToleration } from "./taint-toleration.ts";
import { newVolumeBinding } from "./volume-binding.ts";
import { newDiskLimits, newNodeVolumeLimits } from "./volume-limits.ts";
import { newVolumeRestrictions } from "./volume-restrictions.ts";
import { newVolumeZone } from "./volume-zone.ts";

/** Registry of in-tree plugins: name in the configuration → constructor, called with the profile's arguments. */
export const plugins: Readonly<Record<string, (context: PluginContext, args: PluginArgs) => Plugin>> = {
  PrioritySort: newPrioritySort,
  NodeUnschedulable: newNodeUnschedulable,
  NodeName: newNodeName,
  TaintToleration: newTaintToleration,
  NodeAffinity: (_, { NodeAffinity }) => newNodeAffinity(NodeAffinity),
  NodePorts: newNodePorts,
  NodeResourcesFit: (_, { NodeResourcesFit }) => newNodeResourcesFit(NodeResourcesFit),
  VolumeRestrictions: (context) => newVolumeRestrictions(context),
  EBSLimits: (context) => newDiskLimits(context, "EBSLimits"),
  GCEPDLimits: (context) => newDiskLimits(context, "GCEPDLimits"),
  NodeVolumeLimits: (context) => newNodeVolumeLimits(context),
  AzureDiskLimits: (context) => newDiskLimits(context, "AzureDiskLimits"),
  CinderLimits: (context) => newDiskLimits(context, "CinderLimits"),
  VolumeBinding: (context, { VolumeBinding }) => newVolumeBinding(context, VolumeBinding),
  VolumeZone: (context) => newVolumeZone(context),
  PodTopologySpread: (context, { PodTopologySpread }) => newPodTopologySpread(context, PodTopologySpread),
  InterPodAffinity: (context, { InterPodAffinity }) => newInterPodAffinity(context, InterPodAffinity),
  DefaultPreemption: (context, { DefaultPreemption }) => newDefaultPreemption(context, DefaultPreemption),
  NodeResourcesBalancedAllocation: (_, args) => newNodeResourcesBalancedAllocation(args.NodeResourcesBalancedAllocation),
  ImageLocality: newImageLocality,
  SelectorSpread: (context) => newSelectorSpread(context),
  DefaultBinder: ({ client }) => newDefaultBinder(client),
};
