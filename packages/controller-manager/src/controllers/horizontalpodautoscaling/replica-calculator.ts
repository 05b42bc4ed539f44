import { Quantity } from "@coxswain/apimachinery/objects/meta/quantity";
import { parseTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { isReady, readyCondition } from "../../pods/pod-state.ts";
import type { PodMetrics } from "./metrics-client.ts";

/** Parameters of the replica computation. Source: pkg/controller/podautoscaler/replica_calculator.go */
export interface Rules {
  /** Maximum deviation of the usage ratio from 1 that does not cause scaling. */
  readonly tolerance: number;
  /** Period after a Pod's start during which CPU samples may reflect initialization. */
  readonly cpuInitializationMs: number;
  /** Period after a Pod's start during which a false Ready condition is taken as "never ready so far". */
  readonly initialReadinessMs: number;
  /** ms since the epoch */
  readonly now: number;
}

/** Pods grouped by the usability of their samples. */
interface PodGroups {
  readonly ready: number;
  /** Pending or initializing Pods; their future usage is unknown. */
  readonly unready: readonly string[];
  /** Pods without a sample. */
  readonly missing: readonly string[];
}

/**
 * Pure: groups Pods. Failed and terminating Pods are ignored, and samples of unready Pods are not used.
 * @param resource undefined for metrics that are not resource metrics
 */
function groupPods(
  pods: readonly Pod[],
  metrics: PodMetrics,
  resource: string | undefined,
  rules: Rules,
): PodGroups & { readonly usable: PodMetrics } {
  const unready: string[] = [];
  const missing: string[] = [];
  const usable: PodMetrics = new Map(metrics);
  let ready = 0;
  for (const pod of pods) {
    const { name = "", deletionTimestamp } = pod.metadata;
    if (deletionTimestamp || pod.status?.phase === "Failed") {
      usable.delete(name);
    } else if (pod.status?.phase === "Pending") {
      unready.push(name);
    } else if (!metrics.has(name)) {
      missing.push(name);
    } else if (resource === "cpu" && isStarting(pod, metrics, rules)) {
      unready.push(name);
    } else {
      ready++;
    }
  }
  for (const name of unready) usable.delete(name);
  return { ready, unready, missing, usable };
}

/** Whether the CPU sample of a starting Pod is unusable because it may cover its initialization. */
function isStarting(pod: Pod, metrics: PodMetrics, { cpuInitializationMs, initialReadinessMs, now }: Rules): boolean {
  const condition = readyCondition(pod);
  const startedAt = timeOf(pod.status?.startTime);
  if (condition === undefined || startedAt === undefined) return true;
  const changedAt = timeOf(condition.lastTransitionTime) ?? 0;
  const isUnready = condition.status === "False";
  if (startedAt + cpuInitializationMs <= now) return isUnready && startedAt + initialReadinessMs > changedAt;
  const sample = metrics.get(pod.metadata.name ?? "");
  return isUnready || (sample !== undefined && sample.at < changedAt + sample.windowMs);
}

function timeOf(text: string | null | undefined): number | undefined {
  return text ? parseTime(text) : undefined;
}

/** Usage relative to the target. */
interface Usage {
  readonly ratio: number;
  /** Percentage of the Pods' requests; only for utilization targets. */
  readonly utilization?: number;
  /** Average per Pod, in thousandths. */
  readonly average: number;
}

/** Proposed replica count of one metric. */
export interface Proposal {
  readonly replicas: number;
  readonly utilization?: number;
  /** Value shown in the status, in thousandths. */
  readonly value: number;
}

/**
 * Pure: replicas for a target average value per Pod, in thousandths.
 * @throws Error with upstream's text when there are no Pods or no usable samples
 */
export function replicasForAverage(options: {
  readonly pods: readonly Pod[];
  readonly metrics: PodMetrics;
  readonly resource: string | undefined;
  readonly target: number;
  readonly current: number;
  readonly rules: Rules;
}): Proposal {
  const { pods, metrics, resource, target, current, rules } = options;
  return replicasForPods({
    groups: groupsOf(pods, metrics, resource, rules),
    usageOf(values) {
      const sum = [...values.values()].reduce((total, value) => total + value, 0);
      const average = quotient(BigInt(sum), values.size);
      return { ratio: average / target, average };
    },
    fallback: (_pod, ratio) => (ratio < 1 ? target : 0),
    current,
    rules,
  });
}

/**
 * Pure: replicas for a target utilization in percent of the Pods' requests.
 * @throws Error with upstream's text when there are no Pods, requests or usable samples
 */
export function replicasForUtilization(options: {
  readonly pods: readonly Pod[];
  readonly metrics: PodMetrics;
  readonly resource: string;
  readonly container: string | undefined;
  readonly target: number;
  readonly current: number;
  readonly rules: Rules;
}): Proposal {
  const { pods, metrics, resource, container, target, current, rules } = options;
  const groups = groupsOf(pods, metrics, resource, rules, () => requestsOf(pods, resource, container));
  return replicasForPods({
    groups,
    usageOf(values) {
      const counted = [...values].filter(([name]) => groups.requests.has(name));
      const used = counted.reduce((sum, [, value]) => sum + value, 0);
      const requested = counted.reduce((sum, [name]) => sum + (groups.requests.get(name) ?? 0), 0);
      if (requested === 0) throw new Error("no metrics returned matched known pods");
      const utilization = quotient(BigInt(used) * 100n, requested);
      return { ratio: utilization / target, utilization, average: quotient(BigInt(used), counted.length) };
    },
    fallback: (pod, ratio) => (ratio < 1 ? groups.requests.get(pod) : ratio > 1 ? 0 : undefined),
    current,
    rules,
  });
}

type Groups = ReturnType<typeof groupPods> & { readonly requests: ReadonlyMap<string, number> };

/** @param requests called before the samples are checked, as upstream does, so that its error takes precedence */
function groupsOf(
  pods: readonly Pod[],
  metrics: PodMetrics,
  resource: string | undefined,
  rules: Rules,
  requests: () => ReadonlyMap<string, number> = () => new Map(),
): Groups {
  if (pods.length === 0) throw new Error("no pods returned by selector while calculating replica count");
  const groups = { ...groupPods(pods, metrics, resource, rules), requests: requests() };
  if (groups.usable.size === 0) throw new Error("did not receive metrics for any ready pods");
  return groups;
}

/**
 * Requests per Pod, in thousandths.
 * @throws Error when a container has no request for the resource
 */
function requestsOf(pods: readonly Pod[], resource: string, container: string | undefined): Map<string, number> {
  return new Map(
    pods.map((pod) => {
      let sum = 0;
      for (const { name, resources } of pod.spec.containers) {
        if (container !== undefined && name !== container) continue;
        const request = resources?.requests?.[resource];
        if (request === undefined) throw new Error(`missing request for ${resource}`);
        sum += Quantity.parse(request).milliValue();
      }
      return [pod.metadata.name ?? "", sum];
    }),
  );
}

/**
 * Computes the direction from the measured ratio, then adds assumptions for Pods without usable samples that dampen
 * the change.
 */
function replicasForPods(options: {
  readonly groups: Groups;
  readonly usageOf: (values: ReadonlyMap<string, number>) => Usage;
  /**
   * Assumed usage of a Pod without a sample: its full target or request when scaling down, 0 when scaling up; undefined
   * omits the Pod.
   */
  readonly fallback: (pod: string, ratio: number) => number | undefined;
  readonly current: number;
  readonly rules: Rules;
}): Proposal {
  const { groups, usageOf, fallback, current, rules } = options;
  const { ready, unready, missing, usable } = groups;
  const values = new Map([...usable].map(([name, { value }]) => [name, value]));
  const { ratio, utilization, average } = usageOf(values);
  const propose = (replicas: number): Proposal => ({
    replicas,
    ...(utilization === undefined ? {} : { utilization }),
    value: average,
  });
  const countsUnready = unready.length > 0 && ratio > 1;
  if (!countsUnready && missing.length === 0) return propose(isNear(ratio, rules) ? current : Math.ceil(ratio * ready));

  for (const name of missing) {
    const taken = fallback(name, ratio);
    if (taken !== undefined) values.set(name, taken);
  }
  if (countsUnready) for (const name of unready) values.set(name, 0);
  const { ratio: careful } = usageOf(values);
  const replicas = Math.ceil(careful * values.size);
  const turnsBack = (ratio < 1 && careful > 1) || (ratio > 1 && careful < 1);
  const goesWrongWay = (careful < 1 && replicas > current) || (careful > 1 && replicas < current);
  return propose(isNear(careful, rules) || turnsBack || goesWrongWay ? current : replicas);
}

/** Pure: replicas for a target of a total value that decreases with more Pods. */
export function replicasForValue(options: {
  readonly pods: readonly Pod[];
  readonly value: number;
  readonly target: number;
  readonly current: number;
  readonly rules: Rules;
}): Proposal {
  const { pods, value, target, current, rules } = options;
  const ratio = value / target;
  // With 0 replicas there are no ready Pods to multiply with.
  if (current === 0) return { replicas: Math.ceil(ratio), value };
  if (isNear(ratio, rules)) return { replicas: current, value };
  if (pods.length === 0) {
    throw new Error("unable to calculate ready pods: no pods returned by selector while calculating replica count");
  }
  const ready = pods.filter((pod) => pod.status?.phase === "Running" && isReady(pod)).length;
  return { replicas: Math.ceil(ratio * ready), value };
}

/**
 * Pure: replicas for a target average of a total value.
 * @param current `status.replicas` of the scale
 */
export function replicasForShare(options: {
  readonly value: number;
  readonly target: number;
  readonly current: number;
  readonly rules: Rules;
}): Proposal {
  const { value, target, current, rules } = options;
  const isFar = !isNear(value / (target * current), rules);
  return { replicas: isFar ? Math.ceil(value / target) : current, value: current === 0 ? value : Math.ceil(value / current) };
}

function isNear(ratio: number, { tolerance }: Rules): boolean {
  return Math.abs(1 - ratio) <= tolerance;
}

/** Exact integer division. */
function quotient(dividend: bigint, divisor: number): number {
  return Number(dividend / BigInt(divisor));
}
