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
import type { NodeSelectorTerm } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { qualifiedNameProblems } from "@coxswain/apimachinery/objects/validation/qualified-name";
import type { PluginArgs, ResourceWeight, ShapePoint } from "./plugin-args.ts";

/**
 * Validates the arguments of one plugin; a plugin without arguments has no errors.
 * @param path field path of the arguments
 * @param byVolumeCapacity whether the feature gate VolumeCapacityPriority is on
 * Source: pkg/scheduler/apis/config/validation/validation_pluginargs.go
 */
export function validateArgs(name: string, args: PluginArgs, path: string, byVolumeCapacity: boolean): FieldError[] {
  if (!Object.hasOwn(rules, name)) return [];
  const key = name as keyof PluginArgs;
  return (rules[key] as Rule<typeof key>)(args[key], path, byVolumeCapacity);
}

type Rule<Name extends keyof PluginArgs> = (args: PluginArgs[Name], path: string, byVolumeCapacity: boolean) => FieldError[];

const rules: { readonly [Name in keyof PluginArgs]: Rule<Name> } = {
  DefaultPreemption({ minCandidateNodesPercentage: percentage, minCandidateNodesAbsolute: absolute }, path) {
    const ofPercentage = child(path, "minCandidateNodesPercentage");
    const ofAbsolute = child(path, "minCandidateNodesAbsolute");
    const errors = inRange(percentage, 0, 100, ofPercentage);
    if (absolute < 0) errors.push(invalidValue(ofAbsolute, absolute, "not in valid range [0, inf)"));
    if (percentage === 0 && absolute === 0) {
      errors.push(
        invalidValue(ofPercentage, 0, "cannot be zero at the same time as minCandidateNodesAbsolute"),
        invalidValue(ofAbsolute, 0, "cannot be zero at the same time as minCandidateNodesPercentage"),
      );
    }
    return errors;
  },
  InterPodAffinity: ({ hardPodAffinityWeight }, path) =>
    inRange(hardPodAffinityWeight, 0, 100, child(path, "hardPodAffinityWeight")),
  NodeAffinity({ addedAffinity = {} }, path) {
    const place = child(path, "addedAffinity");
    const terms = addedAffinity.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
    const preferred = addedAffinity.preferredDuringSchedulingIgnoredDuringExecution ?? [];
    return [
      ...validateTerms(terms, child(child(place, "requiredDuringSchedulingIgnoredDuringExecution"), "nodeSelectorTerms")),
      ...validateTerms(
        preferred.map(({ preference }) => preference),
        child(place, "preferredDuringSchedulingIgnoredDuringExecution"),
      ),
    ];
  },
  NodeResourcesBalancedAllocation({ resources }, path) {
    const seen = new Set<string>();
    return resources.flatMap(({ name, weight }, i) => {
      const place = index(child(path, "resources"), i);
      const errors = seen.has(name) ? [duplicate(child(place, "name"), name)] : [];
      seen.add(name);
      if (weight !== 1) errors.push(invalidValue(child(place, "weight"), weight, "must be 1"));
      return errors;
    });
  },
  NodeResourcesFit({ ignoredResources = [], ignoredResourceGroups = [], scoringStrategy }, path) {
    const errors = ignoredResources.flatMap((name, i) => labelName(name, index(child(path, "ignoredResources"), i)));
    for (const [i, group] of ignoredResourceGroups.entries()) {
      const place = index(child(path, "ignoredResourceGroups"), i);
      if (group.includes("/")) errors.push(invalidValue(place, group, "resource group name can't contain '/'"));
      errors.push(...labelName(group, place));
    }
    errors.push(...validateResources(scoringStrategy.resources, child(path, "resources")));
    const ratio = scoringStrategy.requestedToCapacityRatio;
    return ratio === undefined ? errors : [...errors, ...validateShape(ratio.shape ?? [], child(path, "shape"))];
  },
  PodTopologySpread({ defaultConstraints = [], defaultingType }, path) {
    const errors: FieldError[] = [];
    const ofType = child(path, "defaultingType");
    if (!["System", "List"].includes(defaultingType)) errors.push(notSupported(ofType, defaultingType, ["System", "List"]));
    else if (defaultingType === "System" && defaultConstraints.length > 0)
      errors.push(invalidValue(ofType, defaultingType, "when .defaultConstraints are not empty"));
    const constraints = child(path, "defaultConstraints");
    const seen = new Set<string>();
    for (const [i, { maxSkew = 0, topologyKey = "", whenUnsatisfiable, labelSelector }] of defaultConstraints.entries()) {
      const place = index(constraints, i);
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
  },
  VolumeBinding({ bindTimeoutSeconds: timeout, shape }, path, byVolumeCapacity) {
    const errors: FieldError[] = [];
    if (timeout < 0) {
      const why = "invalid BindTimeoutSeconds, should not be a negative value";
      errors.push(invalidValue(child(path, "bindTimeoutSeconds"), timeout, why));
    }
    const place = child(path, "shape");
    if (byVolumeCapacity) return [...errors, ...validateShape(shape ?? [], place)];
    if (shape !== undefined) {
      const why = "unexpected field `shape`, remove it or turn on the feature gate VolumeCapacityPriority";
      errors.push(invalidValue(place, shape, why));
    }
    return errors;
  },
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
  const unsorted = shape.findIndex(({ utilization }, i) => i > 0 && (shape[i - 1] as ShapePoint).utilization >= utilization);
  if (unsorted > 0) {
    const { utilization } = shape[unsorted] as ShapePoint;
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
