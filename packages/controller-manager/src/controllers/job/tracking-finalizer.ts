import type { Job } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

/** Name of the finalizer on Pods and of the annotation on Jobs whose Pods are tracked with it. */
export const trackingName = "batch.kubernetes.io/job-tracking";

export function hasTrackingAnnotation({ metadata }: Job): boolean {
  return Object.hasOwn(metadata.annotations ?? {}, trackingName);
}

/** Whether the Pod has the tracking finalizer. */
export function hasTrackingFinalizer({ metadata }: Pod): boolean {
  return metadata.finalizers?.includes(trackingName) === true;
}

/** Strategic merge patch that removes the tracking finalizer. */
export const removeFinalizerPatch = { metadata: { "$deleteFromPrimitiveList/finalizers": [trackingName] } };
