import type { Logger } from "@coxswain/apimachinery/logging/logger";
import { type QosClass, qosClass } from "@coxswain/apimachinery/quota/qos";
import { podResources } from "../resources/pod-resources.ts";
import type { Rejection, Shortage } from "./admit.ts";
import type { EndPod } from "./end-pod.ts";
import { describePod, isCriticalPod, type NodePod } from "./pod.ts";
import type { PodVerdict } from "./pod-runner.ts";

/** Ends other Pods so that a critical one has what it asks for. Never rejected: the answer says why it cannot be. */
export type Preempt = (pod: NodePod, others: readonly NodePod[], missing: readonly Shortage[]) => Promise<Rejection | undefined>;

export interface PreemptOptions {
  endPod: EndPod;
  /** Told of each Pod that made room, and for which resource. */
  onPreempted: (resource: string) => void;
  log: Logger;
}

const verdict: PodVerdict = { reason: "Preempting", message: "Preempted in order to admit critical pod" };

/** Source: pkg/kubelet/preemption/preemption.go */
export function newPreempt({ endPod, onPreempted, log }: PreemptOptions): Preempt {
  return async (pod, others, missing) => {
    let victims: NodePod[];
    try {
      victims = podsToPreempt(pod, others, missing);
    } catch (err) {
      const why = `preemption: error finding a set of pods to preempt: ${(err as Error).message}`;
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
 * Pure: as few Pods as make good what is missing, the least of the worse classes rather than of the better ones.
 * @throws Error when all of them together do not
 */
export function podsToPreempt(preemptor: NodePod, pods: readonly NodePod[], missing: readonly Shortage[]): NodePod[] {
  const wanted = missing.map(({ resource, requested, used, capacity }) => ({ resource, amount: requested - (capacity - used) }));
  const candidates = pods.filter((pod) => isPreemptable(preemptor, pod));
  const of = (qos: QosClass): NodePod[] => candidates.filter((pod) => qosClass(pod) === qos);
  const [bestEffort, burstable, guaranteed] = [of("BestEffort"), of("Burstable"), of("Guaranteed")];
  const lacking = without(wanted, candidates);
  if (lacking.length > 0) throw notEnough(lacking);
  // Of a better class only what the worse ones could not give if all of them went.
  const fromGuaranteed = closest(guaranteed, without(wanted, [...bestEffort, ...burstable]));
  const fromBurstable = closest(burstable, without(wanted, [...bestEffort, ...fromGuaranteed]));
  return [...closest(bestEffort, without(wanted, [...fromBurstable, ...fromGuaranteed])), ...fromBurstable, ...fromGuaranteed];
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

/** What is still required when these Pods are gone. */
function without(wanted: readonly Requirement[], pods: readonly NodePod[]): Requirement[] {
  return wanted
    .map(({ resource, amount }) => ({ resource, amount: amount - pods.reduce((sum, pod) => sum + requestOf(pod, resource), 0) }))
    .filter(({ amount }) => amount > 0);
}

function notEnough(wanted: readonly Requirement[]): Error {
  const text = wanted.map(({ resource, amount }) => `(res: ${resource}, q: ${amount}), `).join("");
  return new Error(`no set of running pods found to reclaim resources: [${text}]`);
}

/** One after the other the Pod that leaves the least to be wished for; of two the one that asked for less. */
function closest(pods: readonly NodePod[], wanted: readonly Requirement[]): NodePod[] {
  const chosen: NodePod[] = [];
  let left = wanted;
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

/** Shares of what is required that a Pod would leave, squared: each resource counts alike. */
function distance(pod: NodePod, wanted: readonly Requirement[]): number {
  return wanted.reduce((sum, { resource, amount }) => {
    const remaining = Math.max(0, amount - requestOf(pod, resource));
    return sum + (remaining / amount) ** 2;
  }, 0);
}

function bySize(a: NodePod, b: NodePod): number {
  return requestOf(a, "memory") - requestOf(b, "memory") || requestOf(a, "cpu") - requestOf(b, "cpu");
}
