import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import type { CronJob, CronJobStatus, Job } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import { cronJobs, jobs } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { HistogramChild } from "@coxswain/apimachinery/process/metrics/registry";
import type { ControllerContext } from "../../controller-context.ts";
import definitions from "../../metrics.json" with { type: "json" };

/** Dependencies and state shared by all reconciliations of CronJobs. */
export interface CronJobContext extends ControllerContext {
  readonly cronJobs: SharedInformer<CronJob>;
  readonly jobs: SharedInformer<Job>;
  readonly creationSkew: HistogramChild;
}

export function newCronJobContext(base: ControllerContext): CronJobContext {
  return {
    ...base,
    cronJobs: base.informers.for<CronJob>(cronJobs),
    jobs: base.informers.for<Job>(jobs),
    creationSkew: base.registry.histogram(definitions.cronjob_controller_cronjob_job_creation_skew_duration_seconds),
  };
}

/** Context of one reconciliation of one CronJob. */
export interface CronJobSync {
  readonly ctx: CronJobContext;
  /** Private copy. */
  readonly cronJob: CronJob;
  /** Modified during the reconciliation and stored at its end. */
  readonly status: CronJobStatus;
  readonly signal: AbortSignal;
}
