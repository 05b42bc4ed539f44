import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import { invalidValue, notSupported, required } from "@coxswain/apimachinery/errors/field-error";
import { child } from "@coxswain/apimachinery/errors/field-path";
import { deepClone } from "@coxswain/apimachinery/meta/deep-equal";
import type { Job, JobSpec, JobStatus } from "@coxswain/apimachinery/schema/kinds/batch/v1";
import { LabelSelector } from "@coxswain/apimachinery/selectors/label-selector";
import type { PodValidationOptions } from "../../core/pods/validation/options.ts";
import { goStringMap, validatePodTemplate } from "../../core/pods/validation/pod-template.ts";
import { checkLabelSelector, immutableField, nonNegative } from "../../field-checks.ts";

const mostParallelIndexed = 100_000;

/** Source: pkg/apis/batch/validation ValidateJob */
export function validateJob(job: Job, options: PodValidationOptions): FieldError[] {
  const spec = job.spec ?? ({} as JobSpec);
  const errors = validateGeneratedSelector(job);
  errors.push(...validateJobSpec(spec, "spec", options));
  if (spec.completionMode === "Indexed" && (spec.completions ?? 0) > 0) {
    const longest = `${job.metadata.name ?? ""}-${(spec.completions ?? 1) - 1}`;
    if (longest.length > 63) {
      errors.push(
        invalidValue("metadata.name", job.metadata.name ?? "", `will not able to create pod with invalid DNS label: ${longest}`),
      );
    }
  }
  return errors;
}

function validateGeneratedSelector(job: Job): FieldError[] {
  const spec = job.spec ?? ({} as JobSpec);
  if (spec.manualSelector) return [];
  if (!spec.selector) return [];
  const errors: FieldError[] = [];
  const labels = spec.template?.metadata?.labels ?? {};
  const uid = job.metadata.uid ?? "";
  for (const [key, want] of [
    ["controller-uid", uid],
    ["job-name", job.metadata.name ?? ""],
  ] as const) {
    const have = labels[key];
    if (have === undefined)
      errors.push(required("spec.template.metadata.labels", key === "job-name" ? "must be the name of the job" : ""));
    else if (have !== want) errors.push(invalidValue("spec.template.metadata.labels", goStringMap(labels), `must be '${want}'`));
  }
  const expected = { matchLabels: { "controller-uid": uid } };
  if (spec.selector.matchLabels?.["controller-uid"] !== uid || Object.keys(spec.selector.matchLabels).length > 1) {
    errors.push(invalidValue("spec.selector", expected, "`selector` not auto-generated"));
  }
  return errors;
}

export function validateJobSpec(spec: JobSpec, path: string, options: PodValidationOptions, inCronJob = false): FieldError[] {
  const errors: FieldError[] = [];
  for (const field of [
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
  ] as const) {
    errors.push(...nonNegative(spec[field], child(path, field)));
  }
  if (!inCronJob) {
    if (!spec.selector) errors.push(required(child(path, "selector"), ""));
    else {
      errors.push(...checkLabelSelector(spec.selector, child(path, "selector")));
      if (errors.length === 0 && !LabelSelector.fromObject(spec.selector).matches(spec.template?.metadata?.labels)) {
        errors.push(
          invalidValue(
            child(path, "template", "metadata", "labels"),
            goStringMap(spec.template?.metadata?.labels),
            "`selector` does not match template `labels`",
          ),
        );
      }
    }
  }
  const mode: string | undefined = spec.completionMode;
  if (mode !== undefined && mode !== null) {
    if (mode !== "NonIndexed" && mode !== "Indexed")
      errors.push(notSupported(child(path, "completionMode"), mode, ["Indexed", "NonIndexed"]));
    if (mode === "Indexed") {
      if (spec.completions == null) errors.push(required(child(path, "completions"), "when completion mode is Indexed"));
      if ((spec.parallelism ?? 0) > mostParallelIndexed) {
        errors.push(
          invalidValue(
            child(path, "parallelism"),
            spec.parallelism,
            `must be less than or equal to ${mostParallelIndexed} when completion mode is Indexed`,
          ),
        );
      }
    }
  }
  errors.push(...validatePodTemplate(spec.template, child(path, "template"), options));
  const policy: string = spec.template?.spec?.restartPolicy ?? "";
  if (policy === "Always" || policy === "") {
    errors.push(required(child(path, "template", "spec", "restartPolicy"), 'valid values: "OnFailure", "Never"'));
  } else if (policy !== "OnFailure" && policy !== "Never") {
    errors.push(notSupported(child(path, "template", "spec", "restartPolicy"), policy, ["Never", "OnFailure"]));
  }
  return errors;
}

export function validateJobUpdate(next: Job, current: Job, options: PodValidationOptions): FieldError[] {
  const [spec, old] = [next.spec ?? ({} as JobSpec), current.spec ?? ({} as JobSpec)];
  const errors = validateJobSpec(spec, "spec", options);
  errors.push(...immutableField(spec.completions, old.completions, "spec.completions"));
  errors.push(...immutableField(spec.selector, old.selector, "spec.selector"));
  errors.push(...immutableTemplate(spec, old, current.status, options));
  errors.push(...immutableField(spec.completionMode, old.completionMode, "spec.completionMode"));
  return errors;
}

/** Where the pods of a job that has not begun may run can still be changed while it is suspended. */
function immutableTemplate(
  next: JobSpec,
  old: JobSpec,
  status: JobStatus | undefined,
  options: PodValidationOptions,
): FieldError[] {
  const template = deepClone(next.template);
  const mutable = options.featureEnabled("JobMutableNodeSchedulingDirectives") && old.suspend === true && !status?.startTime;
  if (mutable && template?.spec && old.template?.spec) {
    const [to, from] = [template.spec, old.template.spec];
    if (from.nodeSelector === undefined) delete to.nodeSelector;
    else to.nodeSelector = from.nodeSelector;
    if (from.tolerations === undefined) delete to.tolerations;
    else to.tolerations = from.tolerations;
    const affinity = { ...to.affinity };
    if (from.affinity?.nodeAffinity === undefined) delete affinity.nodeAffinity;
    else affinity.nodeAffinity = from.affinity.nodeAffinity;
    if (Object.keys(affinity).length > 0) to.affinity = affinity;
    else delete to.affinity;
    template.metadata = { ...template.metadata };
    for (const field of ["labels", "annotations"] as const) {
      const value = old.template.metadata?.[field];
      if (value === undefined) delete template.metadata[field];
      else template.metadata[field] = value;
    }
  }
  return immutableField(template, old.template, "spec.template");
}

export function validateJobStatusUpdate(next: Job): FieldError[] {
  const status = next.status ?? {};
  const errors: FieldError[] = [];
  for (const field of ["active", "succeeded", "failed"] as const) errors.push(...nonNegative(status[field], `status.${field}`));
  return errors;
}
