import type { Expectations } from "@coxswain/apimachinery/controller/expectations";
import type { Newest } from "@coxswain/apimachinery/informers/newest";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import type { ObjectKey } from "@coxswain/apimachinery/meta/object-key";
import type { Job } from "@coxswain/apimachinery/schema/kinds/batch/v1";
import type { Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { ControllerContext } from "../../controller-context.ts";
import type { FailureBackoff } from "./failure-backoff.ts";
import type { LetGoExpectations } from "./let-go-expectations.ts";
import type { JobMetrics } from "./metrics.ts";

/** Dependencies shared by all reconciliations of Jobs. */
export interface JobRoom {
  readonly ctx: ControllerContext;
  readonly jobs: SharedInformer<Job>;
  /**
   * Jobs including the status this controller last wrote. The Pod cache may already show removed finalizers while the
   * Job cache still shows the old counters; combining the two would create replacement Pods.
   */
  readonly newest: Newest<Job>;
  /** Keys of Jobs whose last status write has an unknown outcome (the request failed without a response). */
  readonly unsure: Set<ObjectKey>;
  readonly pods: SharedInformer<Pod>;
  /** Creations and deletions of Pods that the cache does not show yet. */
  readonly expectations: Expectations;
  readonly letGo: LetGoExpectations;
  readonly failures: FailureBackoff;
  readonly metrics: JobMetrics;
  wakeAfter(key: ObjectKey, delayMs: number): void;
  /** Queues the Pod for removal of its tracking finalizer, because no Job will count it. */
  abandon(pod: Pod): void;
}

/** Context of one reconciliation of one Job. */
export interface Sync {
  readonly room: JobRoom;
  readonly key: ObjectKey;
  /** Private copy; its status is the stored one. */
  readonly job: Job;
  readonly tracked: boolean;
  readonly signal: AbortSignal;
}
