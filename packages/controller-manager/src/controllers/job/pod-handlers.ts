import type { SourceQueue } from "@coxswain/apimachinery/controller/sources";
import type { InformerHandler } from "@coxswain/apimachinery/informers/shared-informer";
import { deepEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { keyOf, toKey } from "@coxswain/apimachinery/objects/meta/object-key";
import { controllerOf } from "@coxswain/apimachinery/objects/meta/owner-references";
import type { Job } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";
import { isJobFinished } from "../../jobs/job-state.ts";
import type { JobContext } from "./context.ts";
import { hasTrackingFinalizer } from "./tracking-finalizer.ts";

/** The Job that controls the Pod; undefined when the Job of that name has a different uid. */
export function jobOfPod(ctx: Pick<JobContext, "jobs">, pod: Pod): Job | undefined {
  const { jobs } = ctx;
  const ref = controllerOf(pod);
  if (ref?.kind !== "Job") return undefined;
  const job = jobs.lister.get(toKey(pod.metadata.namespace, ref.name));
  return job?.metadata.uid === ref.uid ? job : undefined;
}

/** Pod event handler: enqueues the affected Jobs and updates their expectations. */
export function podHandlers(ctx: JobContext, queue: SourceQueue): InformerHandler<Pod> {
  const { jobs, expectations, finalizerExpectations, failures } = ctx;
  const enqueueMatching = (pod: Pod): void => {
    for (const job of jobs.lister.inNamespace(pod.metadata.namespace ?? "")) {
      const selector = LabelSelector.ofCached(job.spec.selector ?? {});
      if (!selector.empty && selector.matches(pod.metadata.labels)) queue.enqueue(keyOf(job));
    }
  };
  /** The failure backoff delays only events of failed Pods; all other events enqueue the Job immediately. */
  const enqueue = (job: Job, pod: Pod): void => {
    const key = keyOf(job);
    const delayMs = pod.status?.phase === "Failed" ? failures.delayMs(key) : 0;
    if (delayMs > 0) queue.enqueueAfter(key, delayMs);
    else queue.enqueue(key);
  };
  /**
   * Returns true when the missing finalizer is this controller's own removal: the Pod is counted already and the Job
   * need not be enqueued.
   */
  const removalObserved = (job: Job, pod: Pod): boolean =>
    !hasTrackingFinalizer(pod) && finalizerExpectations.observed(keyOf(job), pod.metadata.uid ?? "");
  /** True when the Pod's Job is deleted or finished. Queues the Pod for removal of its finalizer if it has one. */
  const isOrphaned = (pod: Pod, job: Job | undefined): boolean => {
    if (job !== undefined && !isJobFinished(job)) return false;
    if (hasTrackingFinalizer(pod) && (controllerOf(pod)?.kind ?? "Job") === "Job") ctx.enqueueOrphan(pod);
    return true;
  };
  const podDeleting = (pod: Pod, deleted: boolean): void => {
    const job = jobOfPod(ctx, pod);
    if (isOrphaned(pod, job) || job === undefined) return;
    expectations.deletionObserved(keyOf(job), pod.metadata.uid ?? "");
    if (deleted) finalizerExpectations.observed(keyOf(job), pod.metadata.uid ?? "");
    else removalObserved(job, pod);
    queue.enqueue(keyOf(job));
  };
  return {
    added(pod) {
      // first seen while terminating, e.g. after a restart of the controller
      if (pod.metadata.deletionTimestamp) return podDeleting(pod, false);
      const job = jobOfPod(ctx, pod);
      const orphaned = isOrphaned(pod, job);
      if (controllerOf(pod) === undefined) return enqueueMatching(pod);
      if (orphaned || job === undefined) return;
      expectations.creationObserved(keyOf(job));
      queue.enqueue(keyOf(job));
    },
    updated(old, pod) {
      if (old === pod) return; // a resync
      if (pod.metadata.deletionTimestamp) return podDeleting(pod, false);
      const moved = !deepEqual(controllerOf(old), controllerOf(pod));
      const before = moved ? jobOfPod(ctx, old) : undefined;
      if (before !== undefined) {
        removalObserved(before, pod);
        enqueue(before, pod);
      }
      const job = jobOfPod(ctx, pod);
      const orphaned = isOrphaned(pod, job);
      if (controllerOf(pod) === undefined) {
        if (moved || !deepEqual(old.metadata.labels ?? {}, pod.metadata.labels ?? {})) enqueueMatching(pod);
        return;
      }
      if (orphaned || job === undefined) return;
      if (!removalObserved(job, pod)) enqueue(job, pod);
    },
    deleted: (pod) => podDeleting(pod, true),
  };
}
