import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { type QosClass, qosClass } from "@coxswain/apimachinery/quota/qos";
import { describePod, isCriticalPod, type NodePod } from "../pod/pod.ts";
import { podResources } from "../pod/pod-resources.ts";
import type { PodVerdict, Rejection } from "../pod/pod-verdict.ts";
import type { Shortage } from "./admission-checks.ts";
import type { EndPod } from "./end-pod.ts";

/** Terminates other Pods to make resources available for a critical Pod. Never rejects: failures become a Rejection. */
export type Preempt = (pod: NodePod, others: readonly NodePod[], missing: readonly Shortage[]) => Promise<Rejection | undefined>;

interface PreemptOptions {
  endPod: EndPod;
  /** Called for each preempted Pod with the resource that was missing. */
  onPreempted: (resource: string) => void;
  log: Logger;
}

const verdict: PodVerdict = { reason: "Preempting", message: "Preempted in order to admit critical pod" };

/**
 * Returns a `Preempt` that ends the chosen Pods one after the other; one that cannot be ended is logged and does not end the
 * attempt.
 * Source: pkg/kubelet/preemption/preemption.go
 */
export function newPreempt({ endPod, onPreempted, log }: PreemptOptions): Preempt {
  return async (pod, others, missing) => {
    let victims: NodePod[];
    try {
      victims = podsToPreempt(pod, others, missing);
    } catch (err) {
      const why = `preemption: error finding a set of pods to preempt: ${messageOf(err)}`;
      const message = `Unexpected error while attempting to recover from admission failure: ${why}`;
      return { reason: "UnexpectedAdmissionError", message };
    }
    for (const victim of victims) {
      log.info("Attempting to evict pods in order to free up resources", { pod: describePod(victim), for: describePod(pod) });
      try {
        await endPod(victim, verdict, undefined);
        onPreempted(missing[0]?.resource ?? "");
      } catch (err) {
        log.error("Failed to evict pod", err, { pod: describePod(victim) });
      }
    }
    return undefined;
  };
}

interface Requirement {
  resource: string;
  amount: number;
}

/**
 * Pure: a small set of Pods that frees the missing resources; prefers BestEffort over Burstable over Guaranteed Pods.
 * @throws Error when all candidates together are not enough
 */
export function podsToPreempt(preemptor: NodePod, pods: readonly NodePod[], missing: readonly Shortage[]): NodePod[] {
  const requirements = missing.map(({ resource, requested, used, capacity }) => ({
    resource,
    amount: requested - (capacity - used),
  }));
  const candidates = pods.filter((pod) => isPreemptable(preemptor, pod));
  const of = (qos: QosClass): NodePod[] => candidates.filter((pod) => qosClass(pod) === qos);
  const [bestEffort, burstable, guaranteed] = [of("BestEffort"), of("Burstable"), of("Guaranteed")];
  const lacking = without(requirements, candidates);
  if (lacking.length > 0) throw notEnough(lacking);
  // From a higher class take only what all Pods of the lower classes together cannot provide.
  const fromGuaranteed = closest(guaranteed, without(requirements, [...bestEffort, ...burstable]));
  const fromBurstable = closest(burstable, without(requirements, [...bestEffort, ...fromGuaranteed]));
  return [
    ...closest(bestEffort, without(requirements, [...fromBurstable, ...fromGuaranteed])),
    ...fromBurstable,
    ...fromGuaranteed,
  ];
}

function isPreemptable(preemptor: NodePod, pod: NodePod): boolean {
  if (isCriticalPod(preemptor) && !isCriticalPod(pod)) return true;
  const [own, other] = [preemptor.spec.priority, pod.spec.priority];
  return own !== undefined && other !== undefined && own > other;
}

function requestOf(pod: NodePod, resource: string): number {
  if (resource === "pods") return 1;
  const amount = podResources(pod, "requests").get(resource);
  return Number((resource === "cpu" ? amount?.milliValue() : amount?.value()) ?? 0);
}

/** The requirements that remain when these Pods are gone. */
function without(requirements: readonly Requirement[], pods: readonly NodePod[]): Requirement[] {
  return requirements
    .map(({ resource, amount }) => ({ resource, amount: amount - pods.reduce((sum, pod) => sum + requestOf(pod, resource), 0) }))
    .filter(({ amount }) => amount > 0);
}

function notEnough(requirements: readonly Requirement[]): Error {
  const text = requirements.map(({ resource, amount }) => `(res: ${resource}, q: ${amount}), `).join("");
  return new Error(`no set of running pods found to reclaim resources: [${text}]`);
}

/** Repeatedly picks the Pod that comes closest to the remaining requirements; on a tie, the one with the smaller requests. */
function closest(pods: readonly NodePod[], requirements: readonly Requirement[]): NodePod[] {
  const chosen: NodePod[] = [];
  let left = requirements;
  let candidates = [...pods];
  while (left.length > 0) {
    const best = candidates.toSorted((a, b) => distance(a, left) - distance(b, left) || bySize(a, b))[0];
    if (best === undefined) throw notEnough(left);
    chosen.push(best);
    candidates = candidates.filter((pod) => pod !== best);
    left = without(left, [best]);
  }
  return chosen;
}

/** Sum of squares of the remaining fraction of each requirement. */
function distance(pod: NodePod, requirements: readonly Requirement[]): number {
  return requirements.reduce((sum, { resource, amount }) => {
    const remaining = Math.max(0, amount - requestOf(pod, resource));
    return sum + (remaining / amount) ** 2;
  }, 0);
}

function bySize(a: NodePod, b: NodePod): number {
  return requestOf(a, "memory") - requestOf(b, "memory") || requestOf(a, "cpu") - requestOf(b, "cpu");
}
