import { jobs } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { allFaults, lasting, namespace, type Plan, podTemplate } from "./plan.ts";

const completions = 4;

/** A Job whose Pods fail now and then; it ends with exactly the requested completions. */
export const jobPlan: Plan = {
  name: "job",
  controllers: ["podgc", "job"],
  faults: allFaults,
  rules: (random) => ({
    ...lasting(random),
    ends: () => ({ afterMs: 200 + Math.floor(random() * 3_000), phase: random() < 0.2 ? "Failed" : "Succeeded" }),
  }),
  // The back-off of failed pods doubles up to six minutes.
  restMs: 600_000,
  async act(user) {
    const completionMode = user.random() < 0.5 ? "Indexed" : "NonIndexed";
    await user.create(jobs, {
      metadata: { name: "sum", namespace },
      spec: {
        completions,
        parallelism: 1 + Math.floor(user.random() * 3),
        completionMode,
        backoffLimit: 100,
        template: podTemplate({}, "app:1", "Never"),
      },
    });
    await user.pause(user.random() * 15_000);
  },
  missing(view) {
    const { status = {} } = view.get("jobs", `${namespace}/sum`) ?? {};
    const isComplete = (status.conditions ?? []).some(
      (c: { type: string; status: string }) => c.type === "Complete" && c.status === "True",
    );
    if (!isComplete) return `the Job is not complete: ${JSON.stringify(status)}`;
    if (status.succeeded !== completions) return `${status.succeeded} completions, ${completions} are wanted`;
    // Failed Pods stay until the Job is deleted.
    const failed = view.all("pods").filter(({ status }) => status?.phase === "Failed").length;
    if ((status.failed ?? 0) < failed) return `${status.failed} failed pods are counted, there are ${failed}`;
    return status.active ? `${status.active} pods are active after the end` : undefined;
  },
};
