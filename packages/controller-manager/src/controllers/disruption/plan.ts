import { scaledValue } from "@coxswain/apimachinery/objects/meta/int-or-string";
import { controllerOf } from "@coxswain/apimachinery/objects/meta/owner-references";
import type { OwnerReference } from "@coxswain/apimachinery/objects/meta/types";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { PodDisruptionBudget } from "@coxswain/apimachinery/objects/schema/kinds/policy/v1";

/** Expected number of Pods and required number of healthy Pods. */
export interface Expectation {
  readonly expectedPods: number;
  readonly desiredHealthy: number;
  /** Names of selected Pods without a controller; their expected number is unknown. */
  readonly unmanaged: readonly string[];
}

/** Replica count of a controller. The uid differs from that of the reference when the owner has a controller itself. */
export interface ControllerScale {
  readonly uid: string;
  readonly replicas: number;
}

/** Looks up the scale of a controller; undefined when it does not exist. */
type ScaleOf = (controller: OwnerReference) => Promise<ControllerScale | undefined>;

/**
 * Computes the expectation. An integer minAvailable counts existing Pods; all other settings refer to the replica
 * counts of the Pods' controllers.
 * @throws Error for a Pod whose controller cannot be found, and for an invalid percentage
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

/** Sum of the replica counts of all distinct controllers of the Pods. */
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

/** The controller that a Pod references does not exist. */
export class NoControllerError extends Error {
  constructor({ metadata }: Pod) {
    super(`found no controllers for pod "${metadata.name}"`);
  }
}
