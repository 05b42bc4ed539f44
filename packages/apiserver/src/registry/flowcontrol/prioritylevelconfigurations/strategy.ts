import {
  type FieldError,
  forbiddenField,
  invalidValue,
  notSupported,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import type { PriorityLevelConfiguration } from "@coxswain/apimachinery/objects/schema/kinds/flowcontrol/v1beta2";
import type { Strategy } from "../../generic/strategy.ts";
import { statusStrategyOf, strategyOf } from "../../strategies.ts";
import { validateTypedConditions } from "../conditions.ts";
import { mandatoryLevelProblems } from "../mandatory.ts";

/** Source: pkg/registry/flowcontrol/prioritylevelconfiguration/strategy.go, pkg/apis/flowcontrol/validation/validation.go */
export const priorityLevelStrategy: Strategy<PriorityLevelConfiguration> = strategyOf<PriorityLevelConfiguration>({
  namespaced: false,
  status: true,
  generation: true,
  allowUnconditionalUpdate: true,
  validate: (next) => [...validatePriorityLevel(next), ...mandatoryLevelProblems(next)],
});

export const priorityLevelStatusStrategy: Strategy<PriorityLevelConfiguration> = statusStrategyOf({
  namespaced: false,
  keepMetadata: true,
  validateUpdate: (next) => validateTypedConditions(next.status?.conditions),
});

/** Maximum entropy of a hand: the shuffle-sharding dealer derives it from one hash value. */
const mostHashBits = 60;

function validatePriorityLevel(level: PriorityLevelConfiguration): FieldError[] {
  const { spec } = level;
  const type: string = spec?.type ?? "";
  const errors: FieldError[] = [];
  if ((level.metadata.name === "exempt") !== (type === "Exempt"))
    errors.push(invalidValue("spec.type", type, "type must be 'Exempt' if and only if name is 'exempt'"));
  if (type === "Exempt") {
    if (spec?.limited) errors.push(forbiddenField("spec.limited", "must be nil if the type is not Limited"));
    return errors;
  }
  if (type !== "Limited") return [...errors, notSupported("spec.type", type, ["Exempt", "Limited"])];
  const limited = spec?.limited;
  if (!limited) return [...errors, required("spec.limited", "must not be empty when type is Limited")];
  const shares = limited.assuredConcurrencyShares ?? 0;
  if (shares <= 0) errors.push(invalidValue("spec.limited.assuredConcurrencyShares", shares, "must be positive"));
  const response = limited.limitResponse;
  const responseType: string = response?.type ?? "";
  const queuing = response?.queuing;
  if (responseType === "Reject") {
    if (queuing)
      errors.push(
        forbiddenField("spec.limited.limitResponse.queuing", "must be nil if limited.limitResponse.type is not Limited"),
      );
  } else if (responseType === "Queue") {
    const path = "spec.limited.limitResponse.queuing";
    if (!queuing) return [...errors, required(path, "must not be empty if limited.limitResponse.type is Limited")];
    const { queues = 0, handSize = 0, queueLengthLimit = 0 } = queuing;
    if (queueLengthLimit <= 0) errors.push(invalidValue(`${path}.queueLengthLimit`, queueLengthLimit, "must be positive"));
    if (queues <= 0) errors.push(invalidValue(`${path}.queues`, queues, "must be positive"));
    else if (queues > 10_000_000) errors.push(invalidValue(`${path}.queues`, queues, "must not be greater than 10000000"));
    if (handSize <= 0) errors.push(invalidValue(`${path}.handSize`, handSize, "must be positive"));
    else if (handSize > queues)
      errors.push(invalidValue(`${path}.handSize`, handSize, `should not be greater than queues (${queues})`));
    else if (Math.ceil(Math.log2(queues) * handSize) > mostHashBits) {
      const text = `required entropy bits of deckSize ${queues} and handSize ${handSize} should not be greater than ${mostHashBits}`;
      errors.push(invalidValue(`${path}.handSize`, handSize, text));
    }
  } else {
    errors.push(notSupported("spec.limited.limitResponse.type", responseType, ["Queue", "Reject"]));
  }
  return errors;
}
