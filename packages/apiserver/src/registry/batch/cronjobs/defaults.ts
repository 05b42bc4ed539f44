import type { CronJob } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import { defaultTemplateOf } from "../../core/pods/defaults.ts";
import { emptyStruct } from "../../rules.ts";

/** Source: pkg/apis/batch/v1/defaults.go */
export function defaultCronJob(cronJob: CronJob): void {
  cronJob.spec ??= emptyStruct();
  const { spec } = cronJob;
  spec.concurrencyPolicy ||= "Allow";
  spec.suspend ??= false;
  spec.successfulJobsHistoryLimit ??= 3;
  spec.failedJobsHistoryLimit ??= 1;
  spec.jobTemplate ??= emptyStruct();
  spec.jobTemplate.spec ??= emptyStruct();
  defaultTemplateOf(spec.jobTemplate.spec);
}
