import { type Controller, done, newController, type Result } from "@coxswain/apimachinery/controller/controller";
import { newExpectations } from "@coxswain/apimachinery/controller/expectations";
import { enqueueBy, enqueueSelf, needsSynced } from "@coxswain/apimachinery/controller/sources";
import { isNotFound } from "@coxswain/apimachinery/errors/predicates";
import { newNewest } from "@coxswain/apimachinery/informers/newest";
import { keyOf, type ObjectKey, splitKey } from "@coxswain/apimachinery/meta/object-key";
import type { Job } from "@coxswain/apimachinery/schema/kinds/batch/v1";
import type { Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { jobs, pods } from "@coxswain/apimachinery/schema/kinds/resources";
import type { ControllerContext, Runnable } from "../../controller-context.ts";
import { isJobFinished } from "../../jobs/job-state.ts";
import { byOrphan, orphanIndex } from "../../pods/ownership.ts";
import { jobRateLimiter, newFailureBackoff } from "./failure-backoff.ts";
import { newLetGoExpectations } from "./let-go-expectations.ts";
import { newJobMetrics } from "./metrics.ts";
import { jobOfPod, podHandlers } from "./pod-handlers.ts";
import { reconcileJob } from "./reconcile.ts";
import type { JobRoom } from "./sync.ts";
import { isHeld, letGoPatch } from "./tracking-finalizer.ts";

/**
 * job-controller: runs up to `spec.parallelism` Pods at a time until `spec.completions` of them have succeeded, and counts
 * finished Pods in the status.
 * Watches Jobs (own key) and Pods (key of the controlling Job; an orphan enqueues every Job that selects it). Writes Pods,
 * their finalizers, jobs/status and Events on the Job. A second queue, of Pods, removes the tracking finalizer from Pods
 * whose Job is finished or deleted.
 * Source: pkg/controller/job/job_controller.go
 */
export function newJobController(ctx: ControllerContext): Runnable {
  const jobInformer = ctx.informers.for<Job>(jobs);
  const podInformer = ctx.informers.for<Pod>(pods);
  podInformer.addIndex(orphanIndex, byOrphan);
  const room: JobRoom = {
    ctx,
    jobs: jobInformer,
    pods: podInformer,
    expectations: newExpectations(ctx.clock),
    letGo: newLetGoExpectations(),
    newest: newNewest(jobInformer),
    unsure: new Set(),
    failures: newFailureBackoff(),
    metrics: newJobMetrics(ctx.registry),
    wakeAfter: (key, delayMs) => controller.enqueueAfter(key, delayMs),
    abandon: (pod) => orphans.enqueue(keyOf(pod)),
  };
  room.jobs.addHandler({
    deleted(job) {
      for (const pod of room.pods.lister.controlledBy(job)) if (isHeld(pod)) room.abandon(pod);
    },
  });
  const common = { log: ctx.log, clock: ctx.clock, metrics: ctx.queueMetrics };
  const controller: Controller = newController({
    ...common,
    limiter: jobRateLimiter(),
    name: "job",
    sources: [enqueueSelf(room.jobs), enqueueBy(room.pods, (queue) => podHandlers(room, queue))],
    reconcile: (key, signal) => reconcileJob(room, key, signal),
    workers,
  });
  const orphans: Controller = newController({
    ...common,
    limiter: jobRateLimiter(),
    name: "job_orphan_pod",
    sources: [needsSynced(room.jobs), needsSynced(room.pods)],
    reconcile: (key, signal) => letGoOfOrphan(room, key, signal),
  });
  return { run: async (signal) => void (await Promise.all([controller.run(signal), orphans.run(signal)])) };
}

/** Not configurable by a flag. Source: pkg/controller/job/config/v1alpha1/defaults.go ConcurrentJobSyncs */
const workers = 5;

async function letGoOfOrphan(room: JobRoom, key: ObjectKey, signal: AbortSignal): Promise<Result> {
  const pod = room.pods.lister.get(key);
  if (pod === undefined || !isHeld(pod)) return done;
  const job = jobOfPod(room, pod);
  if (job !== undefined && !isJobFinished(job)) return done; // adopted in the meantime; the new Job counts the Pod
  try {
    await room.ctx.client.patch(pods, splitKey(key), { type: "strategic", body: letGoPatch }, { signal });
  } catch (err) {
    if (!isNotFound(err)) throw err;
  }
  return done;
}
