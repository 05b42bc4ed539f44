import type {
  HorizontalPodAutoscalerBehavior,
  HPAScalingRules,
} from "@coxswain/apimachinery/objects/schema/kinds/autoscaling/v2";

/** Past recommendations and scale events of one autoscaler. Times are in ms of the monotonic clock. */
export interface History {
  /** Raw recommendations computed from metrics, before stabilization. */
  recommendations: readonly { readonly replicas: number; readonly at: number }[];
  /** Numbers of replicas added and removed. */
  scaledUp: readonly ScaleEvent[];
  scaledDown: readonly ScaleEvent[];
}

/** A change of the replica count. */
interface ScaleEvent {
  readonly change: number;
  readonly at: number;
}

/** The history of an autoscaler that was just seen for the first time. @param now ms of the monotonic clock */
export const newHistory = (replicas: number, now: number): History => ({
  recommendations: [{ replicas, at: now }],
  scaledUp: [],
  scaledDown: [],
});

/** Status, reason and message of a condition. */
interface ConditionState {
  readonly status: "True" | "False";
  readonly reason: string;
  readonly message: string;
}

/** Result of `normalizeReplicas`. */
interface NormalizedReplicas {
  readonly replicas: number;
  readonly ableToScale: ConditionState;
  readonly scalingLimited: ConditionState;
  /** Including the new recommendation, without expired ones. */
  readonly recommendations: History["recommendations"];
}

/** Input of `normalizeReplicas`; times are in ms. */
export interface NormalizationOptions {
  readonly behavior: HorizontalPodAutoscalerBehavior | undefined;
  readonly history: History;
  readonly current: number;
  /** Replica count computed from the metrics. */
  readonly desired: number;
  readonly minReplicas: number;
  readonly maxReplicas: number;
  /** Default of the scale-down stabilization window. */
  readonly downscaleStabilizationMs: number;
  readonly now: number;
}

/**
 * Pure: applies stabilization windows, scaling policies and the replica bounds to the recommendation.
 * Source: pkg/controller/podautoscaler/horizontal.go normalizeDesiredReplicas, normalizeDesiredReplicasWithBehaviors
 */
export function normalizeReplicas(options: NormalizationOptions): NormalizedReplicas {
  const { behavior, history, desired, now, downscaleStabilizationMs } = options;
  const upMs = (behavior?.scaleUp?.stabilizationWindowSeconds ?? 0) * 1000;
  const downSeconds = behavior?.scaleDown?.stabilizationWindowSeconds;
  const downMs = downSeconds === undefined || downSeconds === null ? downscaleStabilizationMs : downSeconds * 1000;
  const stable = behavior === undefined ? highestRecent(options, downMs) : withinRecent(options, upMs, downMs);
  const limited = behavior === undefined ? limitByDefault(options, stable) : limitByRules(options, stable, behavior);
  const oldest = now - Math.max(upMs, downMs);
  return {
    replicas: limited.replicas,
    ableToScale: ableToScaleState(options, stable),
    scalingLimited: { status: limited.replicas === stable ? "False" : "True", reason: limited.reason, message: limited.message },
    recommendations: [...history.recommendations.filter(({ at }) => at >= oldest), { replicas: desired, at: now }],
  };
}

/** Without `spec.behavior` only scaling down is stabilized. */
function highestRecent({ history, desired, now }: NormalizationOptions, windowMs: number): number {
  const recent = history.recommendations.filter(({ at }) => at >= now - windowMs);
  return Math.max(desired, ...recent.map(({ replicas }) => replicas));
}

/** Keeps the current count unless all recommendations in the window are higher, or all are lower. */
function withinRecent({ history, desired, current, now }: NormalizationOptions, upMs: number, downMs: number): number {
  const since = (windowMs: number): number[] =>
    history.recommendations.filter(({ at }) => at > now - windowMs).map(({ replicas }) => replicas);
  const least = Math.min(desired, ...since(upMs));
  const most = Math.max(desired, ...since(downMs));
  return Math.min(Math.max(current, least), most);
}

function ableToScaleState({ behavior, desired, current }: NormalizationOptions, stable: number): ConditionState {
  if (stable === desired) return { status: "True", reason: "ReadyForNewScale", message: "recommended size matches current size" };
  if (behavior !== undefined && desired >= current) {
    return {
      status: "True",
      reason: "ScaleUpStabilized",
      message: "recent recommendations were lower than current one, applying the lowest recent recommendation",
    };
  }
  return {
    status: "True",
    reason: "ScaleDownStabilized",
    message: "recent recommendations were higher than current one, applying the highest recent recommendation",
  };
}

// ---- Limits --------------------------------------------------------------------------------------------------------------

interface Limited {
  readonly replicas: number;
  readonly reason: string;
  readonly message: string;
}

const withinRange = {
  reason: "DesiredWithinRange",
  message: "the desired count is within the acceptable range",
};
const tooFew = {
  reason: "TooFewReplicas",
  message: "the desired replica count is less than the minimum replica count",
};
const tooMany = {
  reason: "TooManyReplicas",
  message: "the desired replica count is more than the maximum replica count",
};
const tooFastUp = {
  reason: "ScaleUpLimit",
  message: "the desired replica count is increasing faster than the maximum scale rate",
};
const tooFastDown = {
  reason: "ScaleDownLimit",
  message: "the desired replica count is decreasing faster than the maximum scale rate",
};

/** Default scale-up limit: double the current count, at least 4. */
function limitByDefault({ current, minReplicas, maxReplicas }: NormalizationOptions, desired: number): Limited {
  const fastest = Math.max(2 * current, 4);
  if (desired < minReplicas) return { replicas: minReplicas, ...tooFew };
  if (desired > Math.min(fastest, maxReplicas))
    return maxReplicas > fastest ? { replicas: fastest, ...tooFastUp } : { replicas: maxReplicas, ...tooMany };
  return { replicas: desired, ...withinRange };
}

function limitByRules(
  { current, minReplicas, maxReplicas, history, now }: NormalizationOptions,
  desired: number,
  { scaleUp, scaleDown }: HorizontalPodAutoscalerBehavior,
): Limited {
  if (desired > current) {
    const fastest = Math.max(current, fastestUp(current, history.scaledUp, scaleUp ?? {}, now));
    if (desired > Math.min(fastest, maxReplicas))
      return maxReplicas > fastest ? { replicas: fastest, ...tooFastUp } : { replicas: maxReplicas, ...tooMany };
  } else if (desired < current) {
    const fastest = Math.min(current, fastestDown(current, history.scaledDown, scaleDown ?? {}, now));
    if (desired < Math.max(fastest, minReplicas))
      return minReplicas < fastest ? { replicas: fastest, ...tooFastDown } : { replicas: minReplicas, ...tooFew };
  }
  return { replicas: desired, ...withinRange };
}

/** Upper bound of replicas according to the scale-up policies. */
function fastestUp(current: number, events: readonly ScaleEvent[], rules: HPAScalingRules, now: number): number {
  if (rules.selectPolicy === "Disabled") return current;
  const allowed = (rules.policies ?? []).map(({ type, value, periodSeconds }) => {
    const atStart = current - changedWithin(events, periodSeconds, now);
    return type === "Pods" ? atStart + value : Math.ceil(atStart * (1 + value / 100));
  });
  return rules.selectPolicy === "Min" ? Math.min(...allowed) : Math.max(...allowed);
}

/**
 * Lower bound of replicas according to the scale-down policies; with selectPolicy Min the policy with the smallest
 * change applies.
 */
function fastestDown(current: number, events: readonly ScaleEvent[], rules: HPAScalingRules, now: number): number {
  if (rules.selectPolicy === "Disabled") return current;
  const allowed = (rules.policies ?? []).map(({ type, value, periodSeconds }) => {
    const atStart = current + changedWithin(events, periodSeconds, now);
    return type === "Pods" ? atStart - value : Math.trunc(atStart * (1 - value / 100));
  });
  return rules.selectPolicy === "Min" ? Math.max(...allowed) : Math.min(...allowed);
}

function changedWithin(events: readonly ScaleEvent[], periodSeconds: number, now: number): number {
  return events.filter(({ at }) => at > now - periodSeconds * 1000).reduce((sum, { change }) => sum + change, 0);
}

/** Pure: adds a scale event to the history. Events are only used with `spec.behavior`. */
export function withScaleEvent(
  history: History,
  behavior: HorizontalPodAutoscalerBehavior | undefined,
  from: number,
  to: number,
  now: number,
): History {
  if (behavior === undefined) return history;
  const [direction, rules] =
    to > from ? (["scaledUp", behavior.scaleUp] as const) : (["scaledDown", behavior.scaleDown] as const);
  const longest = Math.max(0, ...(rules?.policies ?? []).map(({ periodSeconds }) => periodSeconds));
  const recent = history[direction].filter(({ at }) => at >= now - longest * 1000);
  return { ...history, [direction]: [...recent, { change: Math.abs(to - from), at: now }] };
}
