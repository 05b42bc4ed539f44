import type { Job } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import { defaultTemplateOf } from "../../core/pods/defaults.ts";
import { emptyStruct } from "../../rules.ts";

/** Source: pkg/apis/batch/v1/defaults.go */
export function defaultJob(job: Job): void {
  job.spec ??= emptyStruct();
  const { spec } = job;
  // With neither of the two set, the job runs one pod.
  if (spec.completions == null && spec.parallelism == null) {
    spec.completions = 1;
    spec.parallelism = 1;
  }
  spec.parallelism ??= 1;
  spec.backoffLimit ??= 6;
  // Shares the map, like upstream: labels that generateSelector adds to the template then appear on the job, too.
  const labels = spec.template?.metadata?.labels;
  if (labels && Object.keys(job.metadata.labels ?? {}).length === 0 && Object.keys(labels).length > 0)
    job.metadata.labels = labels;
  spec.completionMode ??= "NonIndexed";
  spec.suspend ??= false;
  defaultTemplateOf(spec);
}
