import { deploymentPlan } from "./deployment.ts";
import type { Plan } from "./plan.ts";

/** Two controller managers, one of which leads, and which crash, stall and are cut off: the lease passes on no earlier than it may, but does. */
export const leadershipPlan: Plan = {
  ...deploymentPlan,
  name: "leadership",
  managers: 2,
  faults: ["crash", "crash-after-write", "delay", "lose-requests", "blind", "skew"],
};
