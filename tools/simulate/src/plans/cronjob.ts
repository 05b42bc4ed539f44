import { cronJobs } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { controllerOf } from "../invariants/view.ts";
import { allFaults, lasting, namespace, type Plan, podTemplate } from "./plan.ts";

const minuteMs = 60_000;

/** A CronJob runs each minute, then is suspended; it has one Job for each scheduled time, of which the last few are kept. */
export const cronJobPlan: Plan = {
  name: "cronjob",
  isLong: true,
  controllers: ["podgc", "cronjob", "job", "garbagecollector"],
  // Without clock skew, because scheduled times depend on the manager's clock.
  faults: allFaults.filter((kind) => kind !== "skew"),
  rules: (random) => ({
    ...lasting(random),
    ends: () => ({ afterMs: 200 + Math.floor(random() * 3_000), phase: "Succeeded" }),
  }),
  restMs: 600_000,
  async act(user) {
    await user.create(cronJobs, {
      metadata: { name: "tick", namespace },
      spec: {
        schedule: "* * * * *",
        concurrencyPolicy: (["Allow", "Forbid", "Replace"] as const)[Math.floor(user.random() * 3)],
        successfulJobsHistoryLimit: 1,
        jobTemplate: { spec: { backoffLimit: 100, template: podTemplate({}, "app:1", "Never") } },
      },
    });
    // Three scheduled times in large clusters, two in small ones.
    await user.pause(3.5 * minuteMs + user.random() * 5_000);
    await user.change(cronJobs, "tick", ({ spec }) => {
      spec.suspend = true;
    });
  },
  missing(view) {
    const { metadata, spec, status = {} } = view.get("cronjobs", `${namespace}/tick`) ?? {};
    if (metadata === undefined) return "the CronJob is gone";
    const jobs = view.all("jobs").filter((job) => controllerOf(job) === metadata.uid);
    const running = jobs.find(({ status }) => (status?.succeeded ?? 0) < 1);
    if (running !== undefined) return `the Job ${running.metadata.name} is not complete`;
    // Replace deletes a running Job before creating the next one, which may fail until the CronJob is suspended (as in Kubernetes).
    const isReplaced = jobs.length === 0 && spec.concurrencyPolicy === "Replace";
    if (jobs.length !== 1 && !isReplaced) return `${jobs.length} finished Jobs, one is kept`;
    if ((status.active ?? []).length > 0) return `the status has active Jobs: ${JSON.stringify(status)}`;
    const lastMinute = Math.max(...jobs.map(({ metadata }) => Number(metadata.name?.split("-").at(-1))));
    const reported = Date.parse(status.lastScheduleTime ?? "");
    // The time of a Job is not recorded when the response to its creation was lost (as in Kubernetes).
    return reported > 0 && (isReplaced || reported <= lastMinute * minuteMs)
      ? undefined
      : `the status has ${status.lastScheduleTime}`;
  },
};
