import type { ObjectShape, Shape } from "@coxswain/apimachinery/flags/config-shape";
import { child, type FieldError } from "@coxswain/apimachinery/objects/errors/field-error";
import { isKeyOf, keysOf, tableOf } from "@coxswain/apimachinery/process/narrowing/keys";
import {
  type ArgCheck,
  checkAbsoluteCandidates,
  checkAffinity,
  checkBalanced,
  checkBindTimeout,
  checkCapacityShape,
  checkDefaultingType,
  checkIgnoredGroups,
  checkIgnoredResources,
  checkScoring,
  checkSpreadConstraints,
  within,
} from "./argument-rules.ts";
import { object } from "./object-shape.ts";
import type { PluginArgs, ResourceWeight, ShapePoint } from "./plugin-args.ts";

const cpuAndMemory: readonly ResourceWeight[] = [
  { name: "cpu", weight: 1 },
  { name: "memory", weight: 1 },
];

/** Default shape of the capacity score: it prefers volumes of which the claim uses a larger part. */
export const defaultCapacityShape: readonly ShapePoint[] = [
  { utilization: 0, score: 0 },
  { utilization: 100, score: 10 },
];

const resourceSpec = object("ResourceSpec", { name: "string", weight: "int" });
const shapePoint = object("UtilizationShapePoint", { utilization: "int", score: "int" });
const requirement = object("NodeSelectorRequirement", { key: "string", operator: "string", values: ["string"] });
const nodeSelectorTerm = object("NodeSelectorTerm", { matchExpressions: [requirement], matchFields: [requirement] });
const labelSelector = object("LabelSelector", {
  matchLabels: "any",
  matchExpressions: [object("LabelSelectorRequirement", { key: "string", operator: "string", values: ["string"] })],
});

const nodeAffinity = object("NodeAffinity", {
  requiredDuringSchedulingIgnoredDuringExecution: object("NodeSelector", { nodeSelectorTerms: [nodeSelectorTerm] }),
  preferredDuringSchedulingIgnoredDuringExecution: [
    object("PreferredSchedulingTerm", { weight: "int", preference: nodeSelectorTerm }),
  ],
});
const scoringStrategy = object("ScoringStrategy", {
  type: "string",
  resources: [resourceSpec],
  requestedToCapacityRatio: object("RequestedToCapacityRatioParam", { shape: [shapePoint] }),
});
const spreadConstraint = object("TopologySpreadConstraint", {
  maxSkew: "int",
  topologyKey: "string",
  whenUnsatisfiable: "string",
  labelSelector,
});

/** One argument of a plugin: type, default and validation. */
interface ArgRow<Args, Value> {
  readonly shape: Shape;
  /** undefined for an argument without a default, or with one that depends on feature gates: see `completeArgs` in config.ts. */
  readonly default?: Value;
  readonly check?: ArgCheck<Args, Value>;
}

type ArgRows = {
  readonly [Plugin in keyof PluginArgs]: {
    readonly [Name in keyof PluginArgs[Plugin]]-?: ArgRow<PluginArgs[Plugin], PluginArgs[Plugin][Name]>;
  };
};

/**
 * A row for each argument, in the order in which they are validated.
 * Source: pkg/scheduler/apis/config/v1beta3/defaults.go, pkg/scheduler/apis/config/validation/validation_pluginargs.go
 */
const rows: ArgRows = {
  DefaultPreemption: {
    minCandidateNodesPercentage: { shape: "int", default: 10, check: within(0, 100) },
    minCandidateNodesAbsolute: { shape: "int", default: 100, check: checkAbsoluteCandidates },
  },
  InterPodAffinity: { hardPodAffinityWeight: { shape: "int", default: 1, check: within(0, 100) } },
  NodeAffinity: { addedAffinity: { shape: nodeAffinity, check: checkAffinity } },
  NodeResourcesBalancedAllocation: { resources: { shape: [resourceSpec], default: cpuAndMemory, check: checkBalanced } },
  NodeResourcesFit: {
    ignoredResources: { shape: ["string"], check: checkIgnoredResources },
    ignoredResourceGroups: { shape: ["string"], check: checkIgnoredGroups },
    scoringStrategy: {
      shape: scoringStrategy,
      default: { type: "LeastAllocated", resources: cpuAndMemory },
      check: checkScoring,
    },
  },
  PodTopologySpread: {
    defaultingType: { shape: "string", default: "System", check: checkDefaultingType },
    defaultConstraints: { shape: [spreadConstraint], check: checkSpreadConstraints },
  },
  VolumeBinding: {
    bindTimeoutSeconds: { shape: "int", default: 600, check: checkBindTimeout },
    shape: { shape: [shapePoint], check: checkCapacityShape },
  },
};

/** The rows of a plugin whose types are not known: a check gets values of its own row only. */
const rowsOf = (plugin: keyof PluginArgs): [name: string, row: ArgRow<unknown, unknown>][] =>
  Object.entries(rows[plugin]) as [string, ArgRow<unknown, unknown>][]; // cast: see above

/** cast: the rows have a default for each argument that is not optional. */
export const defaultPluginArgs = tableOf(keysOf(rows), (plugin): object =>
  Object.fromEntries(rowsOf(plugin).flatMap(([name, row]) => (row.default === undefined ? [] : [[name, row.default] as const]))),
) as PluginArgs;

/** The fields of arguments in the configuration file, by plugin name. */
export const argsShapes: Readonly<Record<string, ObjectShape>> = tableOf(keysOf(rows), (plugin) => {
  const fields = Object.fromEntries(rowsOf(plugin).map(([name, { shape }]) => [name, shape]));
  return object(`${plugin}Args`, { apiVersion: "string", kind: "string", ...fields });
});

/**
 * Validates the arguments of one plugin; a plugin without arguments has no errors.
 * @param path field path of the arguments
 * @param byVolumeCapacity whether the feature gate VolumeCapacityPriority is on
 */
export function validateArgs(name: string, args: PluginArgs, path: string, byVolumeCapacity: boolean): FieldError[] {
  if (!isKeyOf(rows, name)) return [];
  const own: Readonly<Record<string, unknown>> = args[name];
  return rowsOf(name).flatMap(
    ([field, { check }]) => check?.(own[field], child(path, field), { args: own, path, byVolumeCapacity }) ?? [],
  );
}
