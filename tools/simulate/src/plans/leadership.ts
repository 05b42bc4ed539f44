import { deploymentPlan } from "./deployment.ts";
import type { Plan } from "./plan.ts";

/** Two controller managers with leader election, which crash, stall and are cut off: the lease passes on, but no earlier than it may. */
export const leadershipPlan: Plan = {
  ...deploymentPlan,
  name: "leadership",
  managers: 2,
  faults: ["crash", "crash-after-write", "delay", "lose-requests", "blind", "skew"],
};
