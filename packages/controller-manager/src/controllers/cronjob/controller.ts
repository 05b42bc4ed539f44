import { type Controller, newController } from "@coxswain/apimachinery/controller/controller";
import { enqueueBy, enqueueControllerOwner } from "@coxswain/apimachinery/controller/sources";
import { keyOf } from "@coxswain/apimachinery/meta/object-key";
import { exponentialBuckets } from "@coxswain/apimachinery/metrics/registry";
import type { CronJob, Job } from "@coxswain/apimachinery/schema/kinds/batch/v1";
import { cronJobs, jobs } from "@coxswain/apimachinery/schema/kinds/resources";
import type { ControllerContext } from "../../controller-context.ts";
import { untilNextOf } from "./decide.ts";
import type { CronJobRoom } from "./look.ts";
import { reconcileCronJob } from "./reconcile.ts";

/**
 * cronjob-controller: creates a Job at each scheduled time, named after that time.
 * Watches CronJobs (own key) and Jobs (key of the controlling CronJob), and requeues for the next scheduled time; writes
 * Jobs, cronjobs/status and Events on the CronJob.
 * Source: pkg/controller/cronjob/cronjob_controllerv2.go
 */
export function newCronJobController(ctx: ControllerContext): Controller {
  const room: CronJobRoom = {
    ctx,
    cronJobs: ctx.informers.for<CronJob>(cronJobs),
    jobs: ctx.informers.for<Job>(jobs),
    creationSkew: ctx.registry.histogram({
      name: "cronjob_controller_cronjob_job_creation_skew_duration_seconds",
      help: "Time between when a cronjob is scheduled to be run, and when the corresponding job is created",
      buckets: exponentialBuckets(1, 2, 10),
    }),
  };
  return newController({
    name: "cronjob",
    sources: [
      enqueueBy(room.cronJobs, ({ enqueue, enqueueAfter }) => ({
        added: (cronJob) => enqueue(keyOf(cronJob)),
        updated(old, cronJob) {
          if (old.spec.schedule === cronJob.spec.schedule) return enqueue(keyOf(cronJob));
          // The schedule changed: wait for its next time; times missed by the old schedule no longer count.
          const delayMs = untilNextAfterChange(ctx, cronJob);
          if (delayMs !== undefined) enqueueAfter(keyOf(cronJob), delayMs);
        },
      })),
      enqueueControllerOwner(room.jobs, "CronJob"),
    ],
    reconcile: (key, signal) => reconcileCronJob(room, key, signal),
    workers,
    log: ctx.log,
    clock: ctx.clock,
    metrics: ctx.queueMetrics,
  });
}

/** Not configurable by a flag. Source: pkg/controller/cronjob/config/v1alpha1/defaults.go ConcurrentCronJobSyncs */
const workers = 5;

function untilNextAfterChange({ clock, recorder }: ControllerContext, cronJob: CronJob): number | undefined {
  try {
    return untilNextOf(cronJob, clock.now());
  } catch {
    const message = `unparseable schedule for cronjob: ${cronJob.spec.schedule}`;
    recorder.event(cronJob, "Warning", "UnParseableCronJobSchedule", message);
    return undefined;
  }
}
