import {
  addErrors,
  child,
  duplicate,
  type FieldError,
  forbiddenField,
  invalidValue,
  notSupported,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { goStruct } from "@coxswain/apimachinery/objects/schema/go/go-print";
import type {
  Affinity,
  NodeSelector,
  NodeSelectorRequirement,
  NodeSelectorTerm,
  PodAffinityTerm,
  PreferredSchedulingTerm,
  Toleration,
  TopologySpreadConstraint,
  WeightedPodAffinityTerm,
} from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import {
  checkingLabelSelector,
  dns1123Label,
  dns1123Subdomain,
  labelValueProblems,
  qualifiedName,
} from "../../../field-checks.ts";
import { eachInSteps, eachWithSteps, need, optionalOneOf } from "../../../rules.ts";

/** Source: pkg/apis/core/validation validateAffinity */
export function* validateAffinity(affinity: Affinity | undefined | null, path: string): Steps<FieldError[]> {
  if (!affinity) return [];
  const errors: FieldError[] = [];
  const node = affinity.nodeAffinity;
  if (node) {
    const [required, preferred] = [child(path, "nodeAffinity", requiredRule), child(path, "nodeAffinity", preferredRule)];
    if (node[requiredRule]) addErrors(errors, yield* validateNodeSelector(node[requiredRule], required));
    addErrors(errors, yield* eachWithSteps(node[preferredRule], preferred, validatePreferredTerm));
  }
  for (const field of ["podAffinity", "podAntiAffinity"] as const) {
    const pods = affinity[field];
    if (!pods) continue;
    addErrors(errors, yield* eachWithSteps(pods[requiredRule], child(path, field, requiredRule), validatePodTerm));
    addErrors(errors, yield* eachWithSteps(pods[preferredRule], child(path, field, preferredRule), validateWeightedTerm));
  }
  return errors;
}

const requiredRule = "requiredDuringSchedulingIgnoredDuringExecution";
const preferredRule = "preferredDuringSchedulingIgnoredDuringExecution";

function* validatePreferredTerm(term: PreferredSchedulingTerm, path: string): Steps<FieldError[]> {
  const errors = validateWeight(term.weight, path);
  addErrors(errors, yield* validateNodeSelectorTerm(term.preference ?? {}, child(path, "preference")));
  return errors;
}

function validateWeight(weight: number, path: string): FieldError[] {
  return weight <= 0 || weight > 100 ? [invalidValue(child(path, "weight"), weight, "must be in the range 1-100")] : [];
}

export function* validateNodeSelector(selector: NodeSelector, path: string): Steps<FieldError[]> {
  const terms = selector.nodeSelectorTerms ?? [];
  if (terms.length === 0) return [required(child(path, "nodeSelectorTerms"), "must have at least one node selector term")];
  return yield* eachWithSteps(terms, child(path, "nodeSelectorTerms"), validateNodeSelectorTerm);
}

function* validateNodeSelectorTerm(term: NodeSelectorTerm, path: string): Steps<FieldError[]> {
  const errors = yield* eachInSteps(term.matchExpressions, child(path, "matchExpressions"), validateExpression);
  addErrors(errors, yield* eachWithSteps(term.matchFields, child(path, "matchFields"), validateFieldRequirement));
  return errors;
}

function validateExpression(expression: NodeSelectorRequirement, at: string): FieldError[] {
  const errors: FieldError[] = [];
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
  return [...errors, ...qualifiedName(expression.key ?? "", child(at, "key"))];
}

function* validateFieldRequirement(field: NodeSelectorRequirement, at: string): Steps<FieldError[]> {
  const errors: FieldError[] = [];
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
  else addErrors(errors, yield* eachInSteps(field.values, child(at, "values"), dns1123Subdomain));
  return errors;
}

function* validateWeightedTerm(weighted: WeightedPodAffinityTerm, path: string): Steps<FieldError[]> {
  const errors = validateWeight(weighted.weight, path);
  addErrors(errors, yield* validatePodTerm(weighted.podAffinityTerm ?? { topologyKey: "" }, child(path, "podAffinityTerm")));
  return errors;
}

function* validatePodTerm(term: PodAffinityTerm, path: string): Steps<FieldError[]> {
  const errors = yield* checkingLabelSelector(term.labelSelector, child(path, "labelSelector"));
  addErrors(errors, yield* checkingLabelSelector(term.namespaceSelector, child(path, "namespaceSelector")));
  const at = child(path, "namespace"); // without the index, like upstream's
  addErrors(errors, yield* eachInSteps(term.namespaces, at, (namespace) => dns1123Label(namespace, at)));
  if (!term.topologyKey) errors.push(required(child(path, "topologyKey"), "can not be empty"));
  return [...errors, ...qualifiedName(term.topologyKey ?? "", child(path, "topologyKey"))];
}

/** Equal for tolerations that differ only in tolerationSeconds. */
export function untimedKey({ key, operator, value, effect }: Toleration): string {
  return JSON.stringify([key, operator, value, effect].map((text) => text ?? ""));
}

/** Source: pkg/apis/core/validation ValidateTolerations */
export function validateTolerations(tolerations: readonly Toleration[], path: string): Steps<FieldError[]> {
  return eachInSteps(tolerations, path, validateToleration);
}

function validateToleration(toleration: Toleration, at: string): FieldError[] {
  const errors: FieldError[] = [];
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
  if (toleration.tolerationSeconds !== undefined && toleration.tolerationSeconds !== null && toleration.effect !== "NoExecute") {
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
  return errors;
}

/** The effect of a taint or toleration, which is required here; callers skip it where it may be empty. */
export function checkTaintEffect(effect: string, path: string): FieldError[] {
  if (["NoSchedule", "PreferNoSchedule", "NoExecute"].includes(effect)) return [];
  if (effect === "") return [required(path)];
  return [notSupported(path, effect, ["NoSchedule", "PreferNoSchedule", "NoExecute"])];
}

/** Source: pkg/apis/core/validation validateTopologySpreadConstraints */
export function* validateTopologySpread(constraints: readonly TopologySpreadConstraint[], path: string): Steps<FieldError[]> {
  const pairOf = (constraint: TopologySpreadConstraint): string =>
    `{${constraint.topologyKey ?? ""}, ${constraint.whenUnsatisfiable ?? ""}}`;
  const pairs = constraints.map(pairOf);
  const last = new Map(pairs.map((pair, i) => [pair, i]));
  let next = 0;
  return yield* eachInSteps(constraints, path, (constraint, at) => {
    const i = next++;
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
