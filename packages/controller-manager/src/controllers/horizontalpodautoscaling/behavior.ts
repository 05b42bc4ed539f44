import type { HorizontalPodAutoscalerBehavior, HPAScalingRules } from "@coxswain/apimachinery/schema/kinds/autoscaling/v2";

/** What was recommended and done before, of one autoscaler; times are in ms of a clock that only grows. */
export interface History {
  /** As metrics gave them, before anything smoothed them. */
  recommendations: readonly { readonly replicas: number; readonly at: number }[];
  /** How many replicas were added, or taken away. */
  scaledUp: readonly ScaleEvent[];
  scaledDown: readonly ScaleEvent[];
}

export interface ScaleEvent {
  readonly change: number;
  readonly at: number;
}

export const newHistory = (replicas: number, now: number): History => ({
  recommendations: [{ replicas, at: now }],
  scaledUp: [],
  scaledDown: [],
});

/** A condition's reason and text. */
export interface Verdict {
  readonly status: "True" | "False";
  readonly reason: string;
  readonly message: string;
}

export interface Smoothed {
  readonly replicas: number;
  readonly ableToScale: Verdict;
  readonly scalingLimited: Verdict;
  /** With the new recommendation, and without what is too old to count. */
  readonly recommendations: History["recommendations"];
}

export interface SmoothingOptions {
  readonly behavior: HorizontalPodAutoscalerBehavior | undefined;
  readonly history: History;
  readonly current: number;
  /** What the metrics ask for. */
  readonly desired: number;
  readonly minReplicas: number;
  readonly maxReplicas: number;
  /** Of scaling down, where the autoscaler itself does not say. */
  readonly downscaleStabilizationMs: number;
  readonly now: number;
}

/**
 * Pure: what is done of what metrics ask for: no sooner than the last while agrees with it, no faster than the rules
 * allow, no further than the bounds.
 * Source: pkg/controller/podautoscaler/horizontal.go normalizeDesiredReplicas, normalizeDesiredReplicasWithBehaviors
 */
export function smooth(options: SmoothingOptions): Smoothed {
  const { behavior, history, desired, now, downscaleStabilizationMs } = options;
  const upMs = (behavior?.scaleUp?.stabilizationWindowSeconds ?? 0) * 1000;
  const downSeconds = behavior?.scaleDown?.stabilizationWindowSeconds;
  const downMs = downSeconds === undefined || downSeconds === null ? downscaleStabilizationMs : downSeconds * 1000;
  const stable = behavior === undefined ? highestRecent(options, downMs) : withinRecent(options, upMs, downMs);
  const limited = behavior === undefined ? limitByDefault(options, stable) : limitByRules(options, stable, behavior);
  const oldest = now - Math.max(upMs, downMs);
  return {
    replicas: limited.replicas,
    ableToScale: stabilizedVerdict(options, stable),
    scalingLimited: { status: limited.replicas === stable ? "False" : "True", reason: limited.reason, message: limited.message },
    recommendations: [...history.recommendations.filter(({ at }) => at >= oldest), { replicas: desired, at: now }],
  };
}

/** Without a behavior only scaling down waits. */
function highestRecent({ history, desired, now }: SmoothingOptions, windowMs: number): number {
  const recent = history.recommendations.filter(({ at }) => at >= now - windowMs);
  return Math.max(desired, ...recent.map(({ replicas }) => replicas));
}

/** As many as there are, unless everything recent says more, or less. */
function withinRecent({ history, desired, current, now }: SmoothingOptions, upMs: number, downMs: number): number {
  const since = (windowMs: number): number[] =>
    history.recommendations.filter(({ at }) => at > now - windowMs).map(({ replicas }) => replicas);
  const least = Math.min(desired, ...since(upMs));
  const most = Math.max(desired, ...since(downMs));
  return Math.min(Math.max(current, least), most);
}

function stabilizedVerdict({ behavior, desired, current }: SmoothingOptions, stable: number): Verdict {
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

/** Twice as many at once, or four. */
function limitByDefault({ current, minReplicas, maxReplicas }: SmoothingOptions, desired: number): Limited {
  const fastest = Math.max(2 * current, 4);
  if (desired < minReplicas) return { replicas: minReplicas, ...tooFew };
  if (desired > Math.min(fastest, maxReplicas))
    return maxReplicas > fastest ? { replicas: fastest, ...tooFastUp } : { replicas: maxReplicas, ...tooMany };
  return { replicas: desired, ...withinRange };
}

function limitByRules(
  { current, minReplicas, maxReplicas, history, now }: SmoothingOptions,
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

/** The most replicas that the rules allow now. */
function fastestUp(current: number, events: readonly ScaleEvent[], rules: HPAScalingRules, now: number): number {
  if (rules.selectPolicy === "Disabled") return current;
  const allowed = (rules.policies ?? []).map(({ type, value, periodSeconds }) => {
    const atStart = current - changedWithin(events, periodSeconds, now);
    return type === "Pods" ? atStart + value : Math.ceil(atStart * (1 + value / 100));
  });
  return rules.selectPolicy === "Min" ? Math.min(...allowed) : Math.max(...allowed);
}

/** The fewest; the policy that changes least leaves most. */
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

/** Pure: the history after a change of the scale. Only a behavior looks at it. */
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
