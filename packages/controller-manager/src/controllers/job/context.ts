import { type Expectations, newExpectations } from "@coxswain/apimachinery/controller/expectations";
import { type Newest, newNewest } from "@coxswain/apimachinery/informers/newest";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import type { ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { Job } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { jobs, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { ControllerContext } from "../../controller-context.ts";
import { byOrphan, orphanIndex } from "../../pods/ownership.ts";
import { type FailureBackoff, newFailureBackoff } from "./failure-backoff.ts";
import { type FinalizerExpectations, newFinalizerExpectations } from "./finalizer-expectations.ts";
import { type JobMetrics, newJobMetrics } from "./metrics.ts";
import { hasTrackingFinalizer } from "./tracking-finalizer.ts";

/** Dependencies and state shared by all reconciliations of Jobs. */
export interface JobContext extends ControllerContext {
  readonly jobs: SharedInformer<Job>;
  /**
   * Jobs including the status this controller last wrote. The Pod cache may already show removed finalizers while the
   * Job cache still shows the old counters; combining the two would create replacement Pods.
   */
  readonly newest: Newest<Job>;
  /** Keys of Jobs whose last status write has an unknown outcome (the request failed without a response). */
  readonly uncertainWrites: Set<ObjectKey>;
  readonly pods: SharedInformer<Pod>;
  /** Creations and deletions of Pods that the cache does not show yet. */
  readonly expectations: Expectations;
  readonly finalizerExpectations: FinalizerExpectations;
  /** Keys of Jobs whose Pods in the cache were compared with the API server's since the start. */
  readonly compared: Set<ObjectKey>;
  readonly failures: FailureBackoff;
  readonly metrics: JobMetrics;
  enqueueAfter(key: ObjectKey, delayMs: number): void;
  /** Queues the Pod for removal of its tracking finalizer, because no Job will count it. */
  enqueueOrphan(pod: Pod): void;
}

/** Also indexes Pods without a controller, and enqueues the Pods of a deleted Job whose finalizer has to be removed. */
export function newJobContext(base: ControllerContext, queues: Pick<JobContext, "enqueueAfter" | "enqueueOrphan">): JobContext {
  const jobInformer = base.informers.for<Job>(jobs);
  const podInformer = base.informers.for<Pod>(pods);
  podInformer.addIndex(orphanIndex, byOrphan);
  jobInformer.addHandler({
    deleted(job) {
      for (const pod of podInformer.lister.controlledBy(job)) if (hasTrackingFinalizer(pod)) queues.enqueueOrphan(pod);
    },
  });
  return {
    ...base,
    ...queues,
    jobs: jobInformer,
    pods: podInformer,
    expectations: newExpectations(base.clock),
    finalizerExpectations: newFinalizerExpectations(),
    newest: newNewest(jobInformer),
    uncertainWrites: new Set(),
    compared: new Set(),
    failures: newFailureBackoff(),
    metrics: newJobMetrics(base.registry),
  };
}

/** Context of one reconciliation of one Job. */
export interface JobSync {
  readonly ctx: JobContext;
  readonly key: ObjectKey;
  /** Private copy; its status is the stored one. */
  readonly job: Job;
  readonly tracked: boolean;
  readonly signal: AbortSignal;
}
