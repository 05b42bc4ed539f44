import { Quantity } from "@coxswain/apimachinery/meta/quantity";
import { parseTime } from "@coxswain/apimachinery/meta/time";
import type { Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { isReady, readyCondition } from "../../pods/pod-state.ts";
import type { PodMetrics } from "./metrics-client.ts";

/** How many replicas a metric asks for. Source: pkg/controller/podautoscaler/replica_calculator.go */
export interface Rules {
  /** A ratio so near to 1 changes nothing. */
  readonly tolerance: number;
  /** After a Pod's start its CPU samples may be those of its start. */
  readonly cpuInitializationMs: number;
  /** After a Pod's start, a Ready condition that is false was never true. */
  readonly initialReadinessMs: number;
  /** ms since the epoch */
  readonly now: number;
}

/** Pods by what their samples are worth. */
interface PodGroups {
  readonly ready: number;
  /** Not yet: they may need nothing, and may soon need their share. */
  readonly unready: readonly string[];
  /** They should have a sample and have none. */
  readonly missing: readonly string[];
}

/** Pure. Pods that failed or go count for nothing; their samples are not used. @param resource undefined for other metrics */
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

/** What such a Pod uses says nothing of what it will. */
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

/** What is used, in relation to what should be. */
interface Usage {
  readonly ratio: number;
  /** Percent of what the Pods request; only where the target is one. */
  readonly utilization?: number;
  /** In thousandths, for each Pod. */
  readonly average: number;
}

export interface Proposal {
  readonly replicas: number;
  readonly utilization?: number;
  /** What the status shows, in thousandths. */
  readonly value: number;
}

/**
 * Pure: replicas so that each Pod uses `target` thousandths of something.
 * @throws Error with upstream's text when there is nothing to compute with
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
 * Pure: replicas so that Pods use `target` percent of what they request.
 * @throws Error with upstream's text when there is nothing to compute with
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

/** @param requests asked for before it is known whether any sample can be used, as upstream does */
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

/** What containers request, in thousandths. @throws Error where one requests nothing */
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

/** The ratio as measured decides the direction; then Pods without a sample are taken to speak against it. */
function replicasForPods(options: {
  readonly groups: Groups;
  readonly usageOf: (values: ReadonlyMap<string, number>) => Usage;
  /** What a Pod without a sample is taken to use: much where the others use little; undefined: it is left out. */
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

/** Pure: replicas so that a value as a whole, which grows less with more Pods, comes to its target. */
export function replicasForValue(options: {
  readonly pods: readonly Pod[];
  readonly value: number;
  readonly target: number;
  readonly current: number;
  readonly rules: Rules;
}): Proposal {
  const { pods, value, target, current, rules } = options;
  const ratio = value / target;
  // From zero there is nothing to multiply.
  if (current === 0) return { replicas: Math.ceil(ratio), value };
  if (isNear(ratio, rules)) return { replicas: current, value };
  if (pods.length === 0) {
    throw new Error("unable to calculate ready pods: no pods returned by selector while calculating replica count");
  }
  const ready = pods.filter((pod) => pod.status?.phase === "Running" && isReady(pod)).length;
  return { replicas: Math.ceil(ratio * ready), value };
}

/** Pure: replicas so that each Pod has `target` of a value. @param current of the target's status */
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

/** As integers are divided, exactly. */
function quotient(dividend: bigint, divisor: number): number {
  return Number(dividend / BigInt(divisor));
}
