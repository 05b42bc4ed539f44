import { cronJobs, jobs } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { controllerOf, type Stored } from "../invariants/view.ts";
import { allFaults, lasting, namespace, type Plan, podTemplate, type User } from "./plan.ts";

const minuteMs = 60_000;
/** Time of the suspension, in ms since the epoch. */
const suspendedAnnotation = "simulated/suspended";

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
    await someJob(user);
    await user.change(cronJobs, "tick", ({ metadata, spec }) => {
      spec.suspend = true;
      metadata.annotations = { ...metadata.annotations, [suspendedAnnotation]: String(Date.now()) };
    });
  },
  missing(view) {
    const { metadata, spec, status = {} } = view.get("cronjobs", `${namespace}/tick`) ?? {};
    if (metadata === undefined) return "the CronJob is gone";
    const jobs = view.all("jobs").filter((job) => controllerOf(job) === metadata.uid);
    const suspendedMs = Number(metadata.annotations?.[suspendedAnnotation]);
    // A manager whose cache is behind may start a Job after the suspension, but not for long.
    if (Date.now() < suspendedMs + 2.25 * minuteMs) return "it may not be suspended yet";
    const late = jobs.find((job) => minuteOf(job) * minuteMs > suspendedMs + minuteMs);
    if (late !== undefined) return `the Job ${late.metadata.name} was started after the suspension`;
    const running = jobs.find(({ status }) => (status?.succeeded ?? 0) < 1);
    if (running !== undefined) return `the Job ${running.metadata.name} is not complete`;
    // Replace deletes a running Job before creating the next one, which may fail until the CronJob is suspended (as in Kubernetes).
    const isReplaced = jobs.length === 0 && spec.concurrencyPolicy === "Replace";
    if (jobs.length !== 1 && !isReplaced) return `${jobs.length} finished Jobs, one is kept`;
    if ((status.active ?? []).length > 0) return `the status has active Jobs: ${JSON.stringify(status)}`;
    const lastMinute = Math.max(...jobs.map(minuteOf));
    const reported = Date.parse(status.lastScheduleTime ?? "");
    // The time of a Job is not recorded when the response to its creation was lost (as in Kubernetes).
    return reported > 0 && (isReplaced || reported <= lastMinute * minuteMs)
      ? undefined
      : `the status has ${status.lastScheduleTime}`;
  },
};

/** Scheduled time of a Job, in minutes since the epoch. */
const minuteOf = ({ metadata }: Stored): number => Number(metadata.name?.split("-").at(-1));

/** Returns once a Job was started: a CronJob that starts its first only when it is suspended would have one in the end, too. */
async function someJob({ client, pause }: User): Promise<void> {
  for (let tries = 0; tries < 60; tries++) {
    const found = await client.list<Stored>(jobs, { namespace }).catch(() => undefined); // the request or its response was lost
    if ((found?.items ?? []).length > 0) return;
    await pause(1_000);
  }
  throw new Error("the CronJob has started no Job");
}
