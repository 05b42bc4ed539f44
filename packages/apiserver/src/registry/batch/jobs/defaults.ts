import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type { Job, JobSpec } from "@coxswain/apimachinery/schema/kinds/batch/v1";
import { defaultTemplateOf } from "../../core/pods/defaults.ts";

/** Source: pkg/apis/batch/v1/defaults.go */
export function defaultJob(object: KubeObject): void {
  const job = object as Job;
  job.spec ??= {} as JobSpec;
  const { spec } = job;
  // One pod that has to succeed, unless either number says more.
  if (spec.completions == null && spec.parallelism == null) {
    spec.completions = 1;
    spec.parallelism = 1;
  }
  spec.parallelism ??= 1;
  spec.backoffLimit ??= 6;
  // The same map, as upstream has it: what the selector adds to the pods' labels is then on the job too.
  const labels = spec.template?.metadata?.labels;
  if (labels && Object.keys(job.metadata.labels ?? {}).length === 0 && Object.keys(labels).length > 0)
    job.metadata.labels = labels;
  spec.completionMode ??= "NonIndexed";
  spec.suspend ??= false;
  defaultTemplateOf(spec);
}
