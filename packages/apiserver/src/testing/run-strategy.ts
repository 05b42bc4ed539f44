import type { FieldError } from "@coxswain/apimachinery/objects/errors/field-error";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import type { Strategy, StrategyContext } from "../registry/generic/strategy.ts";

/** Prepares an update as the store does, in place. */
export function prepareUpdate<T extends KubeObject>(strategy: Strategy<T>, next: T, current: T, ctx: StrategyContext): void {
  const steps = strategy.prepareForUpdate?.(next, current, ctx);
  if (steps) atOnce(steps);
}

/** The errors of a create, or of an update of `current`. */
export function errorsOf(
  strategy: Strategy,
  next: KubeObject,
  current: KubeObject | undefined,
  ctx: StrategyContext,
): FieldError[] {
  const steps = strategy.validateInSteps?.(next, current, ctx);
  if (steps) return atOnce(steps);
  return (current === undefined ? strategy.validate?.(next, ctx) : strategy.validateUpdate?.(next, current, ctx)) ?? [];
}
