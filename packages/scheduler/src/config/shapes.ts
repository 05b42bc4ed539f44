import type { ObjectShape, Shape } from "@coxswain/apimachinery/flags/config-shape";
import { fileShape, type Settings } from "@coxswain/apimachinery/flags/settings";
import {
  connectionSettings,
  insecureAddressSettings,
  leaderElectionSettings,
  profilingSettings,
  schedulingSettings,
} from "../settings.ts";
import { pluginPoints } from "./plugin-sets.ts";

/** The fields of the configuration file. Source: k8s.io/kube-scheduler/config/v1beta3, v1beta2 */
const object = (goName: string, fields: Readonly<Record<string, Shape>>): ObjectShape => ({ goName, fields });
const typeMeta = { apiVersion: "string", kind: "string" } as const;

const pluginSet = object("PluginSet", {
  enabled: [object("Plugin", { name: "string", weight: "int" })],
  disabled: [object("Plugin", { name: "string", weight: "int" })],
});

const profile = object("KubeSchedulerProfile", {
  schedulerName: "string",
  plugins: object("Plugins", Object.fromEntries(pluginPoints.map((point) => [point, pluginSet]))),
  pluginConfig: [object("PluginConfig", { name: "string", args: "any" })],
});

const extender = object("Extender", {
  urlPrefix: "string",
  filterVerb: "string",
  preemptVerb: "string",
  prioritizeVerb: "string",
  weight: "int",
  bindVerb: "string",
  enableHTTPS: "bool",
  tlsConfig: object("ExtenderTLSConfig", {
    insecure: "bool",
    serverName: "string",
    certFile: "string",
    keyFile: "string",
    caFile: "string",
    certData: "string",
    keyData: "string",
    caData: "string",
  }),
  httpTimeout: "duration",
  nodeCacheCapable: "bool",
  managedResources: [object("ExtenderManagedResource", { name: "string", ignoredByScheduler: "bool" })],
  ignorable: "bool",
});

const rows = { ...connectionSettings, ...leaderElectionSettings, ...profilingSettings, ...schedulingSettings };

function configurationShape(settings: Settings): ObjectShape {
  const { goName, fields } = fileShape(settings, {
    "": "KubeSchedulerConfiguration",
    clientConnection: "ClientConnectionConfiguration",
    leaderElection: "LeaderElectionConfiguration",
  });
  return { goName, fields: { ...fields, profiles: [profile], extenders: [extender] } };
}

export const configurationShapes = {
  v1beta3: configurationShape(rows),
  v1beta2: configurationShape({ ...rows, ...insecureAddressSettings }),
};

const resourceSpec = object("ResourceSpec", { name: "string", weight: "int" });
const shapePoint = object("UtilizationShapePoint", { utilization: "int", score: "int" });
const requirement = object("NodeSelectorRequirement", { key: "string", operator: "string", values: ["string"] });
const nodeSelectorTerm = object("NodeSelectorTerm", { matchExpressions: [requirement], matchFields: [requirement] });
const labelSelector = object("LabelSelector", {
  matchLabels: "any",
  matchExpressions: [object("LabelSelectorRequirement", { key: "string", operator: "string", values: ["string"] })],
});

/** Shapes of the plugin arguments, by plugin name. */
export const argsShapes: Readonly<Record<string, ObjectShape>> = {
  DefaultPreemption: object("DefaultPreemptionArgs", {
    ...typeMeta,
    minCandidateNodesPercentage: "int",
    minCandidateNodesAbsolute: "int",
  }),
  InterPodAffinity: object("InterPodAffinityArgs", { ...typeMeta, hardPodAffinityWeight: "int" }),
  NodeAffinity: object("NodeAffinityArgs", {
    ...typeMeta,
    addedAffinity: object("NodeAffinity", {
      requiredDuringSchedulingIgnoredDuringExecution: object("NodeSelector", { nodeSelectorTerms: [nodeSelectorTerm] }),
      preferredDuringSchedulingIgnoredDuringExecution: [
        object("PreferredSchedulingTerm", { weight: "int", preference: nodeSelectorTerm }),
      ],
    }),
  }),
  NodeResourcesBalancedAllocation: object("NodeResourcesBalancedAllocationArgs", { ...typeMeta, resources: [resourceSpec] }),
  NodeResourcesFit: object("NodeResourcesFitArgs", {
    ...typeMeta,
    ignoredResources: ["string"],
    ignoredResourceGroups: ["string"],
    scoringStrategy: object("ScoringStrategy", {
      type: "string",
      resources: [resourceSpec],
      requestedToCapacityRatio: object("RequestedToCapacityRatioParam", { shape: [shapePoint] }),
    }),
  }),
  PodTopologySpread: object("PodTopologySpreadArgs", {
    ...typeMeta,
    defaultConstraints: [
      object("TopologySpreadConstraint", {
        maxSkew: "int",
        topologyKey: "string",
        whenUnsatisfiable: "string",
        labelSelector,
      }),
    ],
    defaultingType: "string",
  }),
  VolumeBinding: object("VolumeBindingArgs", { ...typeMeta, bindTimeoutSeconds: "int", shape: [shapePoint] }),
};
