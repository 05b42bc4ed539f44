/** Conditions of definitions. Source: apiextensions-apiserver pkg/apihelpers/helpers.go SetCRDCondition */
import { formatTime } from "@coxswain/apimachinery/objects/meta/time";
import type { CustomResourceDefinitionCondition } from "@coxswain/apimachinery/objects/schema/kinds/apiextensions/v1";

/** A condition without its lastTransitionTime. */
export type ConditionState = Pick<CustomResourceDefinitionCondition, "type" | "status" | "reason" | "message">;

/** Sets a condition; lastTransitionTime changes only with its status. @param now ms since the epoch @returns a new list */
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
