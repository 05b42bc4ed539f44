import { parseSchedule } from "@coxswain/apimachinery/cron/parse";
import {
  addErrors,
  type FieldError,
  invalidValue,
  notSupported,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { goLabelSelector } from "@coxswain/apimachinery/objects/schema/go/go-print";
import type { CronJob } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { type PodValidationOptions, podValidationOptions } from "../../core/pods/validation/options.ts";
import { nonNegative } from "../../field-checks.ts";
import type { Strategy } from "../../generic/strategy.ts";
import { emptyStruct } from "../../rules.ts";
import { statusStrategyOf, strategyOf } from "../../strategies.ts";
import { validateJobSpec } from "../jobs/validation.ts";

/** 63, the limit of a label, less the 11 characters that the controller appends to names of jobs. */
const longestName = 52;

/** Source: pkg/registry/batch/cronjob/strategy.go, pkg/apis/batch/validation ValidateCronJob */
export const cronJobStrategy: Strategy<CronJob> = {
  ...strategyOf<CronJob>({
    namespaced: true,
    status: true,
    generation: true,
    template: { path: "spec.jobTemplate.spec.template", of: ({ spec }) => spec?.jobTemplate?.spec?.template },
  }),
  // v1beta1 keeps its former default.
  defaultGarbageCollection: ({ requestVersion }) => (requestVersion === "v1beta1" ? "Orphan" : "Background"),
  *validateInSteps(next, current, ctx) {
    const errors = yield* validateCronJob(
      next,
      podValidationOptions(ctx.featureEnabled, current?.spec?.jobTemplate?.spec?.template),
    );
    if (current !== undefined) return errors;
    const name = next.metadata.name ?? "";
    if (Buffer.byteLength(name) > longestName)
      errors.push(invalidValue("metadata.name", name, `must be no more than ${longestName} characters`));
    return errors;
  },
};

export const cronJobStatusStrategy: Strategy<CronJob> = statusStrategyOf({ namespaced: true });

function* validateCronJob(cronJob: CronJob, options: PodValidationOptions): Steps<FieldError[]> {
  const spec = cronJob.spec ?? emptyStruct();
  const errors: FieldError[] = [];
  if (!spec.schedule) errors.push(required("spec.schedule", ""));
  else errors.push(...validateSchedule(spec.schedule));
  errors.push(...nonNegative(spec.startingDeadlineSeconds, "spec.startingDeadlineSeconds"));
  const policy: string = spec.concurrencyPolicy ?? "";
  if (policy === "") errors.push(required("spec.concurrencyPolicy", ""));
  else if (!["Allow", "Forbid", "Replace"].includes(policy)) {
    errors.push(notSupported("spec.concurrencyPolicy", policy, ["Allow", "Forbid", "Replace"]));
  }
  const template = spec.jobTemplate;
  addErrors(errors, yield* validateJobSpec(template?.spec ?? emptyStruct(), "spec.jobTemplate.spec", options));
  if (template?.spec?.selector) {
    const selector = goLabelSelector(template.spec.selector);
    errors.push(invalidValue("spec.jobTemplate.spec.selector", selector, "`selector` will be auto-generated"));
  }
  if (template?.spec?.manualSelector) errors.push(notSupported("spec.jobTemplate.spec.manualSelector", true, ["nil", "false"]));
  errors.push(...nonNegative(spec.successfulJobsHistoryLimit, "spec.successfulJobsHistoryLimit"));
  errors.push(...nonNegative(spec.failedJobsHistoryLimit, "spec.failedJobsHistoryLimit"));
  return errors;
}

function validateSchedule(schedule: string): FieldError[] {
  try {
    parseSchedule(schedule);
    return [];
  } catch (err) {
    return [invalidValue("spec.schedule", schedule, messageOf(err))];
  }
}
