import type { Job } from "@coxswain/apimachinery/schema/kinds/batch/v1";
import type { Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";

/** The finalizer of the Pods, and the annotation of the Jobs whose Pods have it. */
export const trackingName = "batch.kubernetes.io/job-tracking";

export function hasTrackingAnnotation({ metadata }: Job): boolean {
  return Object.hasOwn(metadata.annotations ?? {}, trackingName);
}

export function isHeld({ metadata }: Pod): boolean {
  return metadata.finalizers?.includes(trackingName) === true;
}

/** A strategic merge patch that lets go of a Pod. */
export const letGoPatch = { metadata: { "$deleteFromPrimitiveList/finalizers": [trackingName] } };
