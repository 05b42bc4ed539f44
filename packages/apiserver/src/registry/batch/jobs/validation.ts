import {
  addErrors,
  child,
  duplicate,
  type FieldError,
  forbiddenField,
  invalidValue,
  mapKey,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { semanticEqual, semanticEqualInSteps } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { goLabelSelector, goStruct } from "@coxswain/apimachinery/objects/schema/go/go-print";
import type { Job, JobSpec, JobStatus } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import type { PodValidationOptions } from "../../core/pods/validation/options.ts";
import { goStringMap, matchesTemplate, readSelector, validatePodTemplate } from "../../core/pods/validation/pod-template.ts";
import {
  checkingLabelSelector,
  dns1123LabelProblems,
  fieldImmutableText,
  immutableField,
  nonNegative,
} from "../../field-checks.ts";
import { eachInSteps, emptyStruct, optionalOneOf } from "../../rules.ts";

const mostParallelIndexed = 100_000;
export const trackingAnnotation = "batch.kubernetes.io/job-tracking";

/** Features allowed by gates or because the stored job already uses them. */
export interface JobValidationOptions {
  readonly pod: PodValidationOptions;
  readonly trackingAnnotation: boolean;
}

/**
 * The selector is validated as set by the strategy: generated, unless `manualSelector` is true.
 * Source: pkg/apis/batch/validation ValidateJob
 */
export function* validateJob(job: Job, options: JobValidationOptions): Steps<FieldError[]> {
  const ofSpec = yield* validateSelectedJobSpec(job.spec ?? emptyStruct(), "spec", options.pod);
  return jobFaults(job, options, ofSpec);
}

/** @param ofSpec errors of the spec, which come between the others */
function jobFaults(job: Job, options: JobValidationOptions, ofSpec: readonly FieldError[]): FieldError[] {
  const { completionMode, completions } = job.spec ?? emptyStruct<JobSpec>();
  const name = job.metadata.name ?? "";
  const errors = validateGeneratedSelector(job);
  addErrors(errors, ofSpec);
  if (!options.trackingAnnotation && Object.hasOwn(job.metadata.annotations ?? {}, trackingAnnotation))
    errors.push(forbiddenField(mapKey("metadata.annotations", trackingAnnotation), "cannot add this annotation"));
  if (completionMode === "Indexed" && (completions ?? 0) > 0) {
    const lastPod = `${name}-${(completions ?? 1) - 1}`;
    if (dns1123LabelProblems(lastPod).length > 0)
      errors.push(invalidValue("metadata.name", name, `will not able to create pod with invalid DNS label: ${lastPod}`));
  }
  return errors;
}

/** A generated selector must contain the uid and name labels of the job. */
function validateGeneratedSelector(job: Job): FieldError[] {
  const spec = job.spec ?? emptyStruct();
  if (spec.manualSelector || !spec.selector) return [];
  const { uid = "", name = "" } = job.metadata;
  const expected = { "controller-uid": uid, "job-name": name };
  const labels = spec.template?.metadata?.labels ?? {};
  const errors = uid === "" ? [required("metadata.uid")] : [];
  for (const [key, want] of Object.entries(expected)) {
    const at = mapKey("spec.template.metadata.labels", key);
    if (!Object.hasOwn(labels, key)) errors.push(required(at, `must be '${want}'`));
    else if (labels[key] !== want) errors.push(invalidValue(at, goStringMap(labels), `must be '${want}'`));
  }
  if (readSelector(spec.selector)?.matches(expected) === false)
    errors.push(invalidValue("spec.selector", goLabelSelector(spec.selector), "`selector` not auto-generated"));
  return errors;
}

/** The spec of a job including its selector, which job templates do not have. Source: ValidateJobSpec */
function* validateSelectedJobSpec(spec: JobSpec, path: string, options: PodValidationOptions): Steps<FieldError[]> {
  const errors = yield* validateJobSpec(spec, path, options);
  if (!spec.selector) errors.push(required(child(path, "selector")));
  else addErrors(errors, yield* checkingLabelSelector(spec.selector, child(path, "selector")));
  yield;
  return [...errors, ...matchesTemplate(spec.selector, spec.template, child(path, "template"))];
}

const counts = ["parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"] as const;

/**
 * The spec of a job template, whose selector is not validated; see `validateSelectedJobSpec`.
 * Source: pkg/apis/batch/validation validateJobSpec
 */
export function* validateJobSpec(spec: JobSpec, path: string, options: PodValidationOptions): Steps<FieldError[]> {
  const errors = counts.flatMap((field) => nonNegative(spec[field], child(path, field)));
  errors.push(...optionalOneOf(spec.completionMode, ["NonIndexed", "Indexed"], child(path, "completionMode")));
  if (spec.completionMode === "Indexed") {
    if (spec.completions === undefined || spec.completions === null)
      errors.push(required(child(path, "completions"), "when completion mode is Indexed"));
    if ((spec.parallelism ?? 0) > mostParallelIndexed) {
      const text = `must be less than or equal to ${mostParallelIndexed} when completion mode is Indexed`;
      errors.push(invalidValue(child(path, "parallelism"), spec.parallelism, text));
    }
  }
  addErrors(errors, yield* validatePodTemplate(spec.template, child(path, "template"), options));
  const policy: string = spec.template?.spec?.restartPolicy ?? "";
  const at = child(path, "template", "spec", "restartPolicy");
  if (policy === "Always" || policy === "") errors.push(required(at, 'valid values: "OnFailure", "Never"'));
  else errors.push(...optionalOneOf(policy, ["OnFailure", "Never"], at));
  return errors;
}

/**
 * Completions, completionMode, selector and template are immutable; the template of a suspended job that was never started only
 * in part.
 * Source: pkg/apis/batch/validation ValidateJobUpdate
 */
export function* validateJobUpdate(next: Job, current: Job, options: JobValidationOptions): Steps<FieldError[]> {
  const [spec, old] = [next.spec ?? emptyStruct(), current.spec ?? emptyStruct()];
  const ofSpec = yield* validateSelectedJobSpec(spec, "spec", options.pod);
  return [
    ...jobFaults(next, options, ofSpec),
    ...ofSpec, // upstream validates the spec a second time
    ...immutableField(spec.completions, old.completions, "spec.completions"),
    ...(semanticEqual(spec.selector, old.selector)
      ? []
      : [invalidValue("spec.selector", goLabelSelector(spec.selector), fieldImmutableText)]),
    ...(yield* immutableTemplate(spec, old, current.status, options.pod)),
    ...immutableField(spec.completionMode, old.completionMode, "spec.completionMode"),
  ];
}

/** The template is immutable, except for scheduling directives while the job is suspended and was never started. */
function* immutableTemplate(
  next: JobSpec,
  old: JobSpec,
  status: JobStatus | undefined,
  options: PodValidationOptions,
): Steps<FieldError[]> {
  const template = next.template && { ...next.template, ...(next.template.spec && { spec: { ...next.template.spec } }) };
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
  if (yield* semanticEqualInSteps(template, old.template)) return [];
  yield;
  return [invalidValue("spec.template", goStruct("core/v1.PodTemplateSpec", template ?? {}), fieldImmutableText)];
}

/** No count is negative, and uncounted pods have distinct uids. Source: pkg/apis/batch/validation ValidateJobStatus */
export function* validateJobStatusUpdate(next: Job): Steps<FieldError[]> {
  const status = next.status ?? {};
  const errors = (["active", "succeeded", "failed"] as const).flatMap((field) =>
    nonNegative(status[field], child("status", field)),
  );
  const seen = new Set<string>();
  for (const field of ["succeeded", "failed"] as const) {
    const uids = yield* eachInSteps(
      status.uncountedTerminatedPods?.[field],
      child("status.uncountedTerminatedPods", field),
      (uid, at) => {
        if (uid === "") return [invalidValue(at, uid, "must not be empty")];
        if (seen.has(uid)) return [duplicate(at, uid)];
        seen.add(uid);
        return [];
      },
    );
    addErrors(errors, uids);
  }
  return errors;
}
