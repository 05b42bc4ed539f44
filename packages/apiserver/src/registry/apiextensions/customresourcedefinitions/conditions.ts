/** Conditions of definitions. Source: apiextensions-apiserver pkg/apihelpers/helpers.go SetCRDCondition */
import { formatTime } from "@coxswain/apimachinery/meta/time";
import type { CustomResourceDefinitionCondition } from "@coxswain/apimachinery/schema/kinds/apiextensions/v1";

/** A condition before it is known since when it holds. */
export type ConditionState = Pick<CustomResourceDefinitionCondition, "type" | "status" | "reason" | "message">;

/** @returns a new list; the time of a condition is that of the last change of its status. @param now ms since the epoch */
export function withCondition(
  conditions: readonly CustomResourceDefinitionCondition[],
  state: ConditionState,
  now: number,
): CustomResourceDefinitionCondition[] {
  const old = conditions.find(({ type }) => type === state.type);
  const since = old?.status === state.status && old.lastTransitionTime ? old.lastTransitionTime : formatTime(now);
  const next = { ...old, ...state, lastTransitionTime: since };
  return old === undefined ? [...conditions, next] : conditions.map((one) => (one === old ? next : one));
}
