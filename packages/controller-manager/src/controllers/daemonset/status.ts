import type { DaemonSetStatus } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import { isAvailable, isReady } from "../../pods/pod-state.ts";
import { byBindingAndAge, isUpdated, type View } from "./node-pods.ts";

/**
 * Pure: counts nodes by desired and actual Pods; with several Pods on a node the first by binding and age counts.
 * @param observed false while expectations of own writes are unsatisfied; observedGeneration is then not updated
 * Source: pkg/controller/daemon/daemon_controller.go updateDaemonSetStatus
 */
export function daemonSetStatus(
  { daemonSet, nodes, pods, hash, now }: View,
  observed: boolean,
): Required<Counts> & DaemonSetStatus {
  const counts: Required<Counts> = {
    currentNumberScheduled: 0,
    numberMisscheduled: 0,
    desiredNumberScheduled: 0,
    numberReady: 0,
    updatedNumberScheduled: 0,
    numberAvailable: 0,
    numberUnavailable: 0,
  };
  for (const { name, shouldRun } of nodes) {
    const [pod] = (pods.get(name) ?? []).toSorted(byBindingAndAge);
    if (!shouldRun) {
      if (pod !== undefined) counts.numberMisscheduled++;
      continue;
    }
    counts.desiredNumberScheduled++;
    if (pod === undefined) continue;
    counts.currentNumberScheduled++;
    if (isReady(pod)) counts.numberReady++;
    if (isAvailable(pod, daemonSet.spec.minReadySeconds ?? 0, now)) counts.numberAvailable++;
    if (isUpdated(pod, hash)) counts.updatedNumberScheduled++;
  }
  counts.numberUnavailable = counts.desiredNumberScheduled - counts.numberAvailable;
  const { observedGeneration, ...others } = daemonSet.status ?? {};
  const generation = observed ? (daemonSet.metadata.generation ?? 0) : observedGeneration;
  return { ...others, ...counts, ...(generation === undefined ? {} : { observedGeneration: generation }) };
}

type Counts = Omit<DaemonSetStatus, "observedGeneration" | "collisionCount" | "conditions">;
