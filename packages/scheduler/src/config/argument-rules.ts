import {
  child,
  duplicate,
  type FieldError,
  forbiddenField,
  index,
  invalidValue,
  notSupported,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import type {
  NodeAffinity,
  NodeSelectorTerm,
  TopologySpreadConstraint,
} from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { qualifiedNameProblems } from "@coxswain/apimachinery/objects/validation/qualified-name";
import type { PluginArgs, ResourceWeight, ScoringStrategy, ShapePoint } from "./plugin-args.ts";

/** Source: pkg/scheduler/apis/config/validation/validation_pluginargs.go */

/**
 * Validates one argument of a plugin.
 * @param place field path of the argument
 * @param others all arguments of the plugin with their field path, and whether the feature gate VolumeCapacityPriority is on
 */
export type ArgCheck<Args, Value> = (
  value: Value,
  place: string,
  others: { readonly args: Args; readonly path: string; readonly byVolumeCapacity: boolean },
) => FieldError[];

export const within =
  (least: number, most: number): ArgCheck<unknown, number> =>
  (value, place) =>
    inRange(value, least, most, place);

export const checkAbsoluteCandidates: ArgCheck<PluginArgs["DefaultPreemption"], number> = (absolute, place, { args, path }) => {
  const errors = absolute < 0 ? [invalidValue(place, absolute, "not in valid range [0, inf)")] : [];
  if (args.minCandidateNodesPercentage !== 0 || absolute !== 0) return errors;
  const ofPercentage = child(path, "minCandidateNodesPercentage");
  return [
    ...errors,
    invalidValue(ofPercentage, 0, "cannot be zero at the same time as minCandidateNodesAbsolute"),
    invalidValue(place, 0, "cannot be zero at the same time as minCandidateNodesPercentage"),
  ];
};

export const checkAffinity: ArgCheck<unknown, NodeAffinity | undefined> = (affinity = {}, place) => {
  const terms = affinity.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  const preferred = affinity.preferredDuringSchedulingIgnoredDuringExecution ?? [];
  return [
    ...validateTerms(terms, child(child(place, "requiredDuringSchedulingIgnoredDuringExecution"), "nodeSelectorTerms")),
    ...validateTerms(
      preferred.map(({ preference }) => preference),
      child(place, "preferredDuringSchedulingIgnoredDuringExecution"),
    ),
  ];
};

export const checkBalanced: ArgCheck<unknown, readonly ResourceWeight[]> = (resources, path) => {
  const seen = new Set<string>();
  return resources.flatMap(({ name, weight }, i) => {
    const place = index(path, i);
    const errors = seen.has(name) ? [duplicate(child(place, "name"), name)] : [];
    seen.add(name);
    if (weight !== 1) errors.push(invalidValue(child(place, "weight"), weight, "must be 1"));
    return errors;
  });
};

export const checkIgnoredResources: ArgCheck<unknown, readonly string[] | undefined> = (names = [], place) =>
  names.flatMap((name, i) => labelName(name, index(place, i)));

export const checkIgnoredGroups: ArgCheck<unknown, readonly string[] | undefined> = (groups = [], path) =>
  groups.flatMap((group, i) => {
    const place = index(path, i);
    const errors = group.includes("/") ? [invalidValue(place, group, "resource group name can't contain '/'")] : [];
    return [...errors, ...labelName(group, place)];
  });

/** Upstream's paths leave out `scoringStrategy`. */
export const checkScoring: ArgCheck<unknown, ScoringStrategy> = (strategy, _, { path }) => {
  const errors = validateResources(strategy.resources, child(path, "resources"));
  const ratio = strategy.requestedToCapacityRatio;
  return ratio === undefined ? errors : [...errors, ...validateShape(ratio.shape ?? [], child(path, "shape"))];
};

export const checkDefaultingType: ArgCheck<PluginArgs["PodTopologySpread"], string> = (type, place, { args }) => {
  if (!["System", "List"].includes(type)) return [notSupported(place, type, ["System", "List"])];
  const hasConstraints = (args.defaultConstraints ?? []).length > 0;
  return type === "System" && hasConstraints ? [invalidValue(place, type, "when .defaultConstraints are not empty")] : [];
};

export const checkSpreadConstraints: ArgCheck<unknown, readonly TopologySpreadConstraint[] | undefined> = (
  constraints = [],
  path,
) => {
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  for (const [i, { maxSkew = 0, topologyKey = "", whenUnsatisfiable, labelSelector }] of constraints.entries()) {
    const place = index(path, i);
    if (maxSkew <= 0) errors.push(invalidValue(child(place, "maxSkew"), maxSkew, "not in valid range (0, inf)"));
    const ofKey = child(place, "topologyKey");
    errors.push(...(topologyKey === "" ? [required(ofKey, "can not be empty")] : labelName(topologyKey, ofKey)));
    const ofAction = child(place, "whenUnsatisfiable");
    const actions = ["DoNotSchedule", "ScheduleAnyway"];
    if (!whenUnsatisfiable) errors.push(required(ofAction, "can not be empty"));
    else if (!actions.includes(whenUnsatisfiable)) errors.push(notSupported(ofAction, whenUnsatisfiable, actions));
    if (labelSelector !== undefined) {
      const why = "constraint must not define a selector, as they deduced for each pod";
      errors.push(forbiddenField(child(place, "labelSelector"), why));
    }
    const pair = `{${topologyKey}, ${whenUnsatisfiable}}`;
    if (seen.has(pair)) errors.push(duplicate(place, pair));
    seen.add(pair);
  }
  return errors;
};

export const checkBindTimeout: ArgCheck<unknown, number> = (seconds, place) =>
  seconds < 0 ? [invalidValue(place, seconds, "invalid BindTimeoutSeconds, should not be a negative value")] : [];

export const checkCapacityShape: ArgCheck<unknown, readonly ShapePoint[] | undefined> = (shape, place, { byVolumeCapacity }) => {
  if (byVolumeCapacity) return validateShape(shape ?? [], place);
  if (shape === undefined) return [];
  const why = "unexpected field `shape`, remove it or turn on the feature gate VolumeCapacityPriority";
  return [invalidValue(place, shape, why)];
};

function inRange(value: number, least: number, most: number, path: string): FieldError[] {
  return value < least || value > most ? [invalidValue(path, value, `not in valid range [${least}, ${most}]`)] : [];
}

const labelName = (name: string, path: string): FieldError[] =>
  qualifiedNameProblems(name).map((detail) => invalidValue(path, name, detail));

function validateResources(resources: readonly ResourceWeight[], path: string): FieldError[] {
  return resources.flatMap(({ name, weight }, i) =>
    weight <= 0 || weight > 100
      ? [invalidValue(child(index(path, i), "weight"), weight, `resource weight of ${name} not in valid range (0, 100]`)]
      : [],
  );
}

function validateShape(shape: readonly ShapePoint[], path: string): FieldError[] {
  if (shape.length === 0) return [required(path, "at least one point must be specified")];
  const errors: FieldError[] = [];
  const at = (i: number, name: string): string => child(index(path, i), name);
  const unsorted = shape.findIndex(({ utilization }, i) => i > 0 && shape[i - 1]!.utilization >= utilization);
  if (unsorted > 0) {
    const { utilization } = shape[unsorted]!;
    errors.push(invalidValue(at(unsorted, "utilization"), utilization, "utilization values must be sorted in increasing order"));
  }
  for (const [i, { utilization = 0, score = 0 }] of shape.entries())
    errors.push(...inRange(utilization, 0, 100, at(i, "utilization")), ...inRange(score, 0, 10, at(i, "score")));
  return errors;
}

const operators = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"];

function validateTerms(terms: readonly NodeSelectorTerm[], path: string): FieldError[] {
  return terms.flatMap(({ matchExpressions = [] }, i) =>
    matchExpressions.flatMap(({ operator }, j) =>
      operators.includes(operator)
        ? []
        : [notSupported(child(index(child(index(path, i), "matchExpressions"), j), "operator"), operator, [])],
    ),
  );
}
