import { accountsPlan } from "./accounts.ts";
import { attachDetachPlan } from "./attachdetach.ts";
import { autoscalerPlan } from "./autoscaler.ts";
import { certificatesPlan } from "./certificates.ts";
import { clusterRoleAggregationPlan } from "./clusterrole-aggregation.ts";
import { cronJobPlan } from "./cronjob.ts";
import { csrCleanerPlan } from "./csrcleaner.ts";
import { daemonSetPlan } from "./daemonset.ts";
import { deploymentPlan } from "./deployment.ts";
import { endpointSliceMirroringPlan } from "./endpointslicemirroring.ts";
import { ephemeralVolumePlan } from "./ephemeral-volume.ts";
import { evictionPlan } from "./eviction.ts";
import { jobPlan } from "./job.ts";
import { leadershipPlan } from "./leadership.ts";
import { namespacePlan } from "./namespace.ts";
import { nodeIpamPlan } from "./nodeipam.ts";
import { nodeLifecyclePlan } from "./nodelifecycle.ts";
import { ownershipPlan } from "./ownership.ts";
import type { Plan } from "./plan.ts";
import { quotaPlan } from "./quota.ts";
import { replicationControllerPlan } from "./replicationcontroller.ts";
import { restorePlan } from "./restore.ts";
import { servicePlan } from "./service.ts";
import { statefulSetPlan } from "./statefulset.ts";
import { ttlPlan } from "./ttl.ts";
import { ttlAfterFinishedPlan } from "./ttl-after-finished.ts";
import { volumeExpansionPlan } from "./volume-expansion.ts";
import { volumesPlan } from "./volumes.ts";

export const plans: readonly Plan[] = [
  deploymentPlan,
  jobPlan,
  statefulSetPlan,
  daemonSetPlan,
  namespacePlan,
  ownershipPlan,
  quotaPlan,
  evictionPlan,
  servicePlan,
  cronJobPlan,
  autoscalerPlan,
  volumesPlan,
  accountsPlan,
  leadershipPlan,
  replicationControllerPlan,
  ttlAfterFinishedPlan,
  endpointSliceMirroringPlan,
  nodeIpamPlan,
  nodeLifecyclePlan,
  attachDetachPlan,
  ttlPlan,
  clusterRoleAggregationPlan,
  ephemeralVolumePlan,
  volumeExpansionPlan,
  certificatesPlan,
  csrCleanerPlan,
  restorePlan,
];

/** Plan for a seed; long plans are left out of two rounds of three. */
export function planOf(seed: number, chosen: readonly Plan[]): Plan {
  const plan = chosen[seed % chosen.length]!;
  const shorter = chosen.filter(({ isLong }) => isLong !== true);
  if (plan.isLong !== true || shorter.length === 0) return plan;
  const round = Math.floor(seed / chosen.length);
  return round % 3 === 0 ? plan : shorter[(seed + round) % shorter.length]!;
}
