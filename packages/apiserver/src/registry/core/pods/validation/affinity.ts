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
import { goStruct } from "@coxswain/apimachinery/objects/schema/go/go-print";
import type {
  Affinity,
  NodeSelector,
  NodeSelectorTerm,
  PodAffinityTerm,
  Toleration,
  TopologySpreadConstraint,
  WeightedPodAffinityTerm,
} from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import {
  checkLabelSelector,
  dns1123Label,
  dns1123SubdomainProblems,
  labelValueProblems,
  qualifiedName,
} from "../../../field-checks.ts";
import { need, optionalOneOf } from "../../../rules.ts";

/** Source: pkg/apis/core/validation validateAffinity */
export function validateAffinity(affinity: Affinity | undefined | null, path: string): FieldError[] {
  if (!affinity) return [];
  const errors: FieldError[] = [];
  const node = affinity.nodeAffinity;
  if (node) {
    const at = child(path, "nodeAffinity");
    if (node.requiredDuringSchedulingIgnoredDuringExecution) {
      errors.push(
        ...validateNodeSelector(
          node.requiredDuringSchedulingIgnoredDuringExecution,
          child(at, "requiredDuringSchedulingIgnoredDuringExecution"),
        ),
      );
    }
    for (const [i, term] of (node.preferredDuringSchedulingIgnoredDuringExecution ?? []).entries()) {
      const termPath = index(child(at, "preferredDuringSchedulingIgnoredDuringExecution"), i);
      if (term.weight <= 0 || term.weight > 100)
        errors.push(invalidValue(child(termPath, "weight"), term.weight, "must be in the range 1-100"));
      errors.push(...validateNodeSelectorTerm(term.preference ?? {}, child(termPath, "preference")));
    }
  }
  for (const field of ["podAffinity", "podAntiAffinity"] as const) {
    const pods = affinity[field];
    if (!pods) continue;
    const at = child(path, field);
    for (const [i, term] of (pods.requiredDuringSchedulingIgnoredDuringExecution ?? []).entries()) {
      errors.push(...validatePodTerm(term, index(child(at, "requiredDuringSchedulingIgnoredDuringExecution"), i)));
    }
    for (const [i, weighted] of (pods.preferredDuringSchedulingIgnoredDuringExecution ?? []).entries()) {
      errors.push(...validateWeightedTerm(weighted, index(child(at, "preferredDuringSchedulingIgnoredDuringExecution"), i)));
    }
  }
  return errors;
}

export function validateNodeSelector(selector: NodeSelector, path: string): FieldError[] {
  const terms = selector.nodeSelectorTerms ?? [];
  if (terms.length === 0) return [required(child(path, "nodeSelectorTerms"), "must have at least one node selector term")];
  return terms.flatMap((term, i) => validateNodeSelectorTerm(term, index(child(path, "nodeSelectorTerms"), i)));
}

function validateNodeSelectorTerm(term: NodeSelectorTerm, path: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const [i, expression] of (term.matchExpressions ?? []).entries()) {
    const at = index(child(path, "matchExpressions"), i);
    const count = expression.values?.length ?? 0;
    switch (expression.operator) {
      case "In":
      case "NotIn":
        if (count === 0) errors.push(required(child(at, "values"), "must be specified when `operator` is 'In' or 'NotIn'"));
        break;
      case "Exists":
      case "DoesNotExist":
        if (count > 0)
          errors.push(forbiddenField(child(at, "values"), "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
        break;
      case "Gt":
      case "Lt":
        if (count !== 1)
          errors.push(required(child(at, "values"), "must be specified single value when `operator` is 'Lt' or 'Gt'"));
        break;
      default:
        errors.push(invalidValue(child(at, "operator"), expression.operator ?? "", "not a valid selector operator"));
    }
    errors.push(...qualifiedName(expression.key ?? "", child(at, "key")));
  }
  for (const [i, field] of (term.matchFields ?? []).entries()) {
    const at = index(child(path, "matchFields"), i);
    const operator: string = field.operator ?? "";
    if (operator !== "In" && operator !== "NotIn")
      errors.push(invalidValue(child(at, "operator"), operator, "not a valid selector operator"));
    else if (field.values?.length !== 1) {
      errors.push(
        required(child(at, "values"), "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"),
      );
    }
    if (field.key !== "metadata.name")
      errors.push(invalidValue(child(at, "key"), field.key ?? "", "not a valid field selector key"));
    else {
      for (const [j, value] of (field.values ?? []).entries()) {
        for (const message of dns1123SubdomainProblems(value))
          errors.push(invalidValue(index(child(at, "values"), j), value, message));
      }
    }
  }
  return errors;
}

function validateWeightedTerm(weighted: WeightedPodAffinityTerm, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (weighted.weight <= 0 || weighted.weight > 100)
    errors.push(invalidValue(child(path, "weight"), weighted.weight, "must be in the range 1-100"));
  return [...errors, ...validatePodTerm(weighted.podAffinityTerm ?? { topologyKey: "" }, child(path, "podAffinityTerm"))];
}

function validatePodTerm(term: PodAffinityTerm, path: string): FieldError[] {
  const errors = checkLabelSelector(term.labelSelector, child(path, "labelSelector"));
  errors.push(...checkLabelSelector(term.namespaceSelector, child(path, "namespaceSelector")));
  for (const namespace of term.namespaces ?? []) errors.push(...dns1123Label(namespace, child(path, "namespace")));
  if (!term.topologyKey) errors.push(required(child(path, "topologyKey"), "can not be empty"));
  errors.push(...qualifiedName(term.topologyKey ?? "", child(path, "topologyKey")));
  return errors;
}

/** Equal for tolerations that differ only in tolerationSeconds. */
export function untimedKey({ key, operator, value, effect }: Toleration): string {
  return JSON.stringify([key, operator, value, effect].map((text) => text ?? ""));
}

/** Source: pkg/apis/core/validation ValidateTolerations */
export function validateTolerations(tolerations: readonly Toleration[], path: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const [i, toleration] of tolerations.entries()) {
    const at = index(path, i);
    const key = toleration.key ?? "";
    const operator: string = toleration.operator ?? "";
    if (key !== "") errors.push(...qualifiedName(key, child(at, "key")));
    if (key === "" && operator !== "Exists") {
      errors.push(
        invalidValue(
          child(at, "operator"),
          operator,
          'operator must be Exists when `key` is empty, which means "match all values and all keys"',
        ),
      );
    }
    if (
      toleration.tolerationSeconds !== undefined &&
      toleration.tolerationSeconds !== null &&
      toleration.effect !== "NoExecute"
    ) {
      errors.push(
        invalidValue(child(at, "effect"), toleration.effect ?? "", "effect must be 'NoExecute' when `tolerationSeconds` is set"),
      );
    }
    if (operator === "Equal" || operator === "") {
      const messages = labelValueProblems(toleration.value ?? "");
      if (messages.length > 0) errors.push(invalidValue(child(at, "operator"), toleration.value ?? "", messages.join(";")));
    } else if (operator === "Exists") {
      if (toleration.value)
        errors.push(
          invalidValue(
            child(at, "operator"),
            goStruct("core/v1.Toleration", toleration),
            "value must be empty when `operator` is 'Exists'",
          ),
        );
    } else {
      errors.push(notSupported(child(at, "operator"), operator, ["Equal", "Exists"]));
    }
    if (toleration.effect) errors.push(...checkTaintEffect(toleration.effect, child(at, "effect")));
  }
  return errors;
}

/** The effect of a taint or toleration, which is required here; callers skip it where it may be empty. */
export function checkTaintEffect(effect: string, path: string): FieldError[] {
  if (["NoSchedule", "PreferNoSchedule", "NoExecute"].includes(effect)) return [];
  if (effect === "") return [required(path)];
  return [notSupported(path, effect, ["NoSchedule", "PreferNoSchedule", "NoExecute"])];
}

/** Source: pkg/apis/core/validation validateTopologySpreadConstraints */
export function validateTopologySpread(constraints: readonly TopologySpreadConstraint[], path: string): FieldError[] {
  const pairOf = (constraint: TopologySpreadConstraint): string =>
    `{${constraint.topologyKey ?? ""}, ${constraint.whenUnsatisfiable ?? ""}}`;
  const pairs = constraints.map(pairOf);
  const last = new Map(pairs.map((pair, i) => [pair, i]));
  return constraints.flatMap((constraint, i) => {
    const at = index(path, i);
    const errors: FieldError[] = [];
    if ((constraint.maxSkew ?? 0) <= 0)
      errors.push(invalidValue(child(at, "maxSkew"), constraint.maxSkew ?? 0, "must be greater than zero"));
    errors.push(...need(constraint.topologyKey, child(at, "topologyKey"), "can not be empty"));
    const actions = ["DoNotSchedule", "ScheduleAnyway"];
    errors.push(...optionalOneOf(constraint.whenUnsatisfiable ?? "", actions, child(at, "whenUnsatisfiable")));
    // Reports the first of two duplicates, like upstream.
    if (last.get(pairs[i]!)! > i) errors.push(duplicate(child(at, "{topologyKey, whenUnsatisfiable}"), pairs[i]));
    return errors;
  });
}
