import { daemonSetPlan } from "./daemonset.ts";
import { deploymentPlan } from "./deployment.ts";
import { evictionPlan } from "./eviction.ts";
import { jobPlan } from "./job.ts";
import { namespacePlan } from "./namespace.ts";
import { ownershipPlan } from "./ownership.ts";
import type { Plan } from "./plan.ts";
import { quotaPlan } from "./quota.ts";
import { restorePlan } from "./restore.ts";
import { servicePlan } from "./service.ts";
import { statefulSetPlan } from "./statefulset.ts";

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
  restorePlan,
];
