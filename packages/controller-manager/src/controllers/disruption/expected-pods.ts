import { scaledValue } from "@coxswain/apimachinery/meta/int-or-string";
import { controllerOf } from "@coxswain/apimachinery/meta/owner-references";
import type { OwnerReference } from "@coxswain/apimachinery/meta/types";
import type { Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { PodDisruptionBudget } from "@coxswain/apimachinery/schema/kinds/policy/v1";

/** How many Pods there should be, and how many of them have to be healthy. */
export interface Expectation {
  readonly expectedPods: number;
  readonly desiredHealthy: number;
  /** Selected Pods that nobody controls: how many of them there should be cannot be known. */
  readonly unmanaged: readonly string[];
}

/** What a controller is asked for. Its uid is not that of the reference where the owner is itself controlled. */
export interface ControllerScale {
  readonly uid: string;
  readonly replicas: number;
}

/** @returns undefined when the controller is not there */
export type ScaleOf = (controller: OwnerReference) => Promise<ControllerScale | undefined>;

/**
 * A number of available Pods is of those that exist; everything else is a share of what the Pods' controllers ask for.
 * @throws Error for a Pod whose controller cannot be found, and for a percentage that is none
 * Source: pkg/controller/disruption/disruption.go getExpectedPodCount
 */
export async function expectedPods(
  { minAvailable, maxUnavailable }: PodDisruptionBudget["spec"],
  pods: readonly Pod[],
  scaleOf: ScaleOf,
): Promise<Expectation> {
  if (maxUnavailable !== undefined) {
    const { total, unmanaged } = await totalScale(pods, scaleOf);
    const desiredHealthy = Math.max(0, total - scaledValue(maxUnavailable, total, true));
    return { expectedPods: total, desiredHealthy, unmanaged };
  }
  if (typeof minAvailable === "number") return { expectedPods: pods.length, desiredHealthy: minAvailable, unmanaged: [] };
  if (minAvailable === undefined) return { expectedPods: 0, desiredHealthy: 0, unmanaged: [] };
  const { total, unmanaged } = await totalScale(pods, scaleOf);
  return { expectedPods: total, desiredHealthy: scaledValue(minAvailable, total, true), unmanaged };
}

/** The sum over all controllers of the Pods, each once. */
async function totalScale(pods: readonly Pod[], scaleOf: ScaleOf): Promise<{ total: number; unmanaged: string[] }> {
  const replicas = new Map<string, number>();
  const unmanaged: string[] = [];
  for (const pod of pods) {
    const controller = controllerOf(pod);
    if (controller === undefined) {
      unmanaged.push(pod.metadata.name ?? "");
      continue;
    }
    if (replicas.has(controller.uid)) continue;
    const scale = await scaleOf(controller);
    if (scale === undefined) throw new NoControllerError(pod);
    replicas.set(scale.uid, scale.replicas);
  }
  return { total: [...replicas.values()].reduce((sum, count) => sum + count, 0), unmanaged };
}

/** A Pod says that it is controlled, and its controller is not there. */
export class NoControllerError extends Error {
  constructor({ metadata }: Pod) {
    super(`found no controllers for pod "${metadata.name}"`);
  }
}
