import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import type { HistogramChild } from "@coxswain/apimachinery/metrics/registry";
import type { CronJob, CronJobStatus, Job } from "@coxswain/apimachinery/schema/kinds/batch/v1";
import type { ControllerContext } from "../../controller-context.ts";

/** Dependencies that all reconciles of CronJobs share. */
export interface CronJobRoom {
  readonly ctx: ControllerContext;
  readonly cronJobs: SharedInformer<CronJob>;
  readonly jobs: SharedInformer<Job>;
  readonly creationSkew: HistogramChild;
}

/** Context of one reconciliation of one CronJob. */
export interface Look {
  readonly room: CronJobRoom;
  /** Private copy. */
  readonly cronJob: CronJob;
  /** Modified during the reconciliation and stored at its end. */
  readonly status: CronJobStatus;
  readonly signal: AbortSignal;
}
