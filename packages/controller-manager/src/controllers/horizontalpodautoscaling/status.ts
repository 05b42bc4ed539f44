import { formatTime } from "@coxswain/apimachinery/objects/meta/time";
import type {
  HorizontalPodAutoscaler,
  HorizontalPodAutoscalerCondition,
  HorizontalPodAutoscalerStatus,
  MetricStatus,
} from "@coxswain/apimachinery/objects/schema/kinds/autoscaling/v2";

/** Accumulates the status during one reconciliation, so that findings are kept when a later step fails. */
export interface StatusDraft {
  /** Sets a condition; lastTransitionTime only changes with the status. */
  condition(type: string, status: "True" | "False", reason: string, message: string): void;
  currentReplicas(count: number): void;
  replicas(current: number, desired: number, metrics: readonly MetricStatus[]): void;
  /** @param at RFC 3339 */
  rescaled(at: string): void;
  status(): HorizontalPodAutoscalerStatus;
}

/**
 * Starts a draft from the stored status.
 * @param now ms since the epoch
 */
export function newStatus({ status }: HorizontalPodAutoscaler, now: number): StatusDraft {
  let conditions: readonly HorizontalPodAutoscalerCondition[] = status?.conditions ?? [];
  let draft: Omit<HorizontalPodAutoscalerStatus, "conditions"> = { desiredReplicas: 0, currentMetrics: [], ...status };
  return {
    condition(type, wanted, reason, message) {
      const known = conditions.find((condition) => condition.type === type);
      const lastTransitionTime = known?.status === wanted ? known.lastTransitionTime : formatTime(now);
      const next: HorizontalPodAutoscalerCondition = { type, status: wanted, lastTransitionTime, reason, message };
      conditions = known === undefined ? [...conditions, next] : conditions.map((old) => (old === known ? next : old));
    },
    currentReplicas(count) {
      draft = { ...draft, currentReplicas: count };
    },
    replicas(current, desired, metrics) {
      draft = { ...draft, currentReplicas: current, desiredReplicas: desired, currentMetrics: [...metrics] };
    },
    rescaled(at) {
      draft = { ...draft, lastScaleTime: at };
    },
    status: () => ({ ...draft, ...(conditions.length === 0 ? {} : { conditions: [...conditions] }) }),
  };
}
