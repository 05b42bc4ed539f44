import type { CronJob, JobSpec, JobTemplateSpec } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import { defaultTemplateOf } from "../../core/pods/defaults.ts";

/** Source: pkg/apis/batch/v1/defaults.go */
export function defaultCronJob(cronJob: CronJob): void {
  cronJob.spec ??= {} as NonNullable<CronJob["spec"]>;
  const { spec } = cronJob;
  spec.concurrencyPolicy ||= "Allow";
  spec.suspend ??= false;
  spec.successfulJobsHistoryLimit ??= 3;
  spec.failedJobsHistoryLimit ??= 1;
  spec.jobTemplate ??= {} as JobTemplateSpec;
  spec.jobTemplate.spec ??= {} as JobSpec;
  defaultTemplateOf(spec.jobTemplate.spec);
}
