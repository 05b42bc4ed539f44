import { deploymentPlan } from "./deployment.ts";
import type { Plan } from "./plan.ts";

/** The store of a running cluster is restored to an earlier state, as from a backup; the outcome must be reached nevertheless. */
export const restorePlan: Plan = {
  ...deploymentPlan,
  name: "restore",
  controllers: [...deploymentPlan.controllers, "garbagecollector"],
  faults: ["delay", "break-watches", "break-etcd-watches", "crash", "restore"],
  losesHistory: true,
  isLong: true,
  missing(view) {
    // The restored state may be from before the Deployment was created.
    return view.all("deployments").length === 0 ? undefined : deploymentPlan.missing(view);
  },
};
