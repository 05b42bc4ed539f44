import type { LabelSelector } from "@coxswain/apimachinery/objects/meta/types";
import type { Job } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import { podValidationOptions } from "../../core/pods/validation/options.ts";
import type { Strategy, StrategyContext } from "../../generic/strategy.ts";
import { specTemplate, statusStrategyOf, strategyOf } from "../../strategies.ts";
import {
  type JobValidationOptions,
  trackingAnnotation,
  validateJob,
  validateJobStatusUpdate,
  validateJobUpdate,
} from "./validation.ts";

/** Source: pkg/registry/batch/job/strategy.go */
export const jobStrategy: Strategy<Job> = {
  ...strategyOf<Job>({
    namespaced: true,
    status: true,
    generation: true,
    prepareForCreate(next, ctx) {
      const annotations = { ...next.metadata.annotations };
      if (ctx.featureEnabled("JobTrackingWithFinalizers")) annotations[trackingAnnotation] = "";
      else delete annotations[trackingAnnotation];
      if (Object.keys(annotations).length > 0) next.metadata.annotations = annotations;
      else delete next.metadata.annotations;
      if (!ctx.featureEnabled("SuspendJob")) delete next.spec.suspend;
    },
    prepareForUpdate(next, current, ctx) {
      // With the gate off, a suspended job may still be resumed.
      if (!ctx.featureEnabled("SuspendJob") && current.spec.suspend !== true) keepSuspend(next, current);
      if (ctx.featureEnabled("JobTrackingWithFinalizers") || isTracked(current)) return;
      const { [trackingAnnotation]: dropped, ...rest } = next.metadata.annotations ?? {};
      if (dropped !== undefined) next.metadata.annotations = rest;
    },
    template: specTemplate,
  }),
  // Deleting a job without a propagation policy keeps its pods, for compatibility with older clients.
  defaultGarbageCollection: "Orphan",
  validateInSteps(next, current, ctx) {
    if (current !== undefined) return validateJobUpdate(next, current, optionsOf(ctx, current));
    generateSelector(next); // not in prepareForCreate: the uid is assigned after it
    return validateJob(next, optionsOf(ctx));
  },
};

export const jobStatusStrategy: Strategy<Job> = statusStrategyOf({
  namespaced: true,
  validateInSteps: (next) => validateJobStatusUpdate(next),
});

/** Tracking with finalizers cannot be enabled for an existing job. */
function optionsOf(ctx: StrategyContext, current?: Job): JobValidationOptions {
  return {
    pod: podValidationOptions(ctx.featureEnabled, current?.spec?.template),
    trackingAnnotation: current ? isTracked(current) : ctx.featureEnabled("JobTrackingWithFinalizers"),
  };
}

function keepSuspend(next: Job, { spec: { suspend } }: Job): void {
  if (suspend === undefined) delete next.spec.suspend;
  else next.spec.suspend = suspend;
}

function isTracked({ metadata }: Job): boolean {
  return metadata.annotations?.[trackingAnnotation] !== undefined;
}

/** Generates a selector for the uid of the job, unless `manualSelector` is set. */
function generateSelector(job: Job): void {
  const { spec } = job;
  if (!spec || spec.manualSelector) return;
  spec.template ??= { metadata: {}, spec: { containers: [] } };
  spec.template.metadata ??= {};
  spec.template.metadata.labels ??= {};
  const { labels } = spec.template.metadata;
  const uid = job.metadata.uid ?? "";
  // Conflicting labels of the user are kept; validation rejects them.
  labels["controller-uid"] ??= uid;
  labels["job-name"] ??= job.metadata.name ?? "";
  const selector: LabelSelector = { ...spec.selector, matchLabels: { ...spec.selector?.matchLabels } };
  if (selector.matchLabels?.["controller-uid"] === undefined) selector.matchLabels!["controller-uid"] = uid;
  spec.selector = selector;
}
