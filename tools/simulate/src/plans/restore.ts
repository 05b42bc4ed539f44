import { deploymentPlan } from "./deployment.ts";
import type { Plan } from "./plan.ts";

/** The store is restored to an earlier state under a running cluster, as after a restore from a backup: everything comes right nevertheless. */
export const restorePlan: Plan = {
  ...deploymentPlan,
  name: "restore",
  controllers: [...deploymentPlan.controllers, "garbagecollector"],
  faults: ["delay", "break-watches", "break-etcd-watches", "crash", "restore"],
  losesHistory: true,
  isLong: true,
  missing(view) {
    // It may have gone back to before the Deployment was made.
    return view.all("deployments").length === 0 ? undefined : deploymentPlan.missing(view);
  },
};
