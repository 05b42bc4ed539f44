import { type Controller, done, newController, type Result } from "@coxswain/apimachinery/controller/controller";
import { enqueueMapped } from "@coxswain/apimachinery/controller/sources";
import { isNotFound } from "@coxswain/apimachinery/errors/predicates";
import { keyOf, type ObjectKey, splitKey } from "@coxswain/apimachinery/meta/object-key";
import { parseTime } from "@coxswain/apimachinery/meta/time";
import { exponentialBuckets, type HistogramChild } from "@coxswain/apimachinery/metrics/registry";
import type { Job } from "@coxswain/apimachinery/schema/kinds/batch/v1";
import { jobs } from "@coxswain/apimachinery/schema/kinds/resources";
import type { ControllerContext } from "../../controller-context.ts";
import { finishedConditionOf } from "../../jobs/job-state.ts";

/**
 * ttl-after-finished: deletes Jobs `spec.ttlSecondsAfterFinished` after they ended, their Pods with them.
 * Watches Jobs, and wakes up when the time of one has come.
 * Source: pkg/controller/ttlafterfinished/ttlafterfinished_controller.go
 */
export function newTtlAfterFinishedController(ctx: ControllerContext): Controller {
  const informer = ctx.informers.for<Job>(jobs);
  const durations = ctx.registry.histogram({
    name: "ttl_after_finished_controller_job_deletion_duration_seconds",
    help: "The time it took to delete the job since it became eligible for deletion",
    buckets: exponentialBuckets(0.1, 2, 14),
  });
  return newController({
    name: "ttl_jobs_to_delete",
    sources: [enqueueMapped(informer, (job) => (needsCleanup(job) ? [keyOf(job)] : []))],
    reconcile: (key, signal) => reconcile(ctx, key, informer.lister.get(key), durations, signal),
    workers: ctx.config.concurrency.ttlAfterFinished,
    log: ctx.log,
    clock: ctx.clock,
    metrics: ctx.metrics,
  });
}

async function reconcile(
  { client, clock }: ControllerContext,
  key: ObjectKey,
  cached: Job | undefined,
  durations: HistogramChild,
  signal: AbortSignal,
): Promise<Result> {
  if (cached === undefined || !needsCleanup(cached)) return done;
  const early = expiresAt(cached) - clock.now();
  if (early > 0) return { requeueAfterMs: early };
  try {
    // Its time may have been made longer, which the cache does not show yet.
    const fresh = await client.get<Job>(jobs, splitKey(key), { signal });
    if (!needsCleanup(fresh)) return done;
    const expired = expiresAt(fresh);
    if (expired > clock.now()) return { requeueAfterMs: expired - clock.now() };
    const { uid = "" } = fresh.metadata;
    await client.delete(jobs, splitKey(key), { propagationPolicy: "Foreground", preconditions: { uid }, signal });
    durations.observe((clock.now() - expired) / 1000);
  } catch (err) {
    if (!isNotFound(err)) throw err; // gone without us
  }
  return done;
}

function needsCleanup(job: Job): boolean {
  const { metadata, spec } = job;
  return spec.ttlSecondsAfterFinished != null && !metadata.deletionTimestamp && finishedConditionOf(job) !== undefined;
}

/** In ms. @throws Error for a Job that does not say when it ended */
function expiresAt(job: Job): number {
  const ended = parseTime(finishedConditionOf(job)?.lastTransitionTime ?? "");
  if (ended === undefined) throw new Error(`unable to find the time when the Job ${keyOf(job)} finished`);
  return ended + (job.spec.ttlSecondsAfterFinished ?? 0) * 1000;
}
