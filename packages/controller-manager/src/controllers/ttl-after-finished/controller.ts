import { type Controller, done, type Result } from "@coxswain/apimachinery/controller/controller";
import { enqueueMapped } from "@coxswain/apimachinery/controller/sources";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { keyOf, type ObjectKey, splitKey } from "@coxswain/apimachinery/objects/meta/object-key";
import { parseTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Job } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import { jobs } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { HistogramChild } from "@coxswain/apimachinery/process/metrics/registry";
import type { ControllerContext } from "../../controller-context.ts";
import { defineController } from "../../define-controller.ts";
import { finishedConditionOf } from "../../jobs/job-state.ts";
import definitions from "../../metrics.json" with { type: "json" };

/**
 * ttl-after-finished: deletes Jobs and their Pods `spec.ttlSecondsAfterFinished` after they finished.
 * Watches Jobs, and requeues each for its expiry.
 * Source: pkg/controller/ttlafterfinished/ttlafterfinished_controller.go
 */
export function newTtlAfterFinishedController(base: ControllerContext): Controller {
  const durations = base.registry.histogram(definitions.ttl_after_finished_controller_job_deletion_duration_seconds);
  const ctx: TtlAfterFinishedContext = { ...base, jobs: base.informers.for<Job>(jobs), durations };
  return defineController(ctx, {
    name: "ttl_jobs_to_delete",
    resource: jobs,
    sources: [enqueueMapped(ctx.jobs, (job) => (needsCleanup(job) ? [keyOf(job)] : []))],
    reconcile,
    workers: ctx.config.concurrency.ttlAfterFinished,
  });
}

interface TtlAfterFinishedContext extends ControllerContext {
  readonly jobs: SharedInformer<Job>;
  readonly durations: HistogramChild;
}

async function reconcile(ctx: TtlAfterFinishedContext, key: ObjectKey, signal: AbortSignal): Promise<Result> {
  const { client, clock, durations } = ctx;
  const cached = ctx.jobs.lister.get(key);
  if (cached === undefined || !needsCleanup(cached)) return done;
  const early = expiresAt(cached) - clock.now();
  if (early > 0) return { requeueAfterMs: early };
  try {
    // The TTL may have been extended, which the cache may not show yet.
    const fresh = await client.get<Job>(jobs, splitKey(key), { signal });
    if (!needsCleanup(fresh)) return done;
    const expired = expiresAt(fresh);
    if (expired > clock.now()) return { requeueAfterMs: expired - clock.now() };
    const { uid = "" } = fresh.metadata;
    await client.delete(jobs, splitKey(key), { propagationPolicy: "Foreground", preconditions: { uid }, signal });
    durations.observe((clock.now() - expired) / 1000);
  } catch (err) {
    if (!isNotFound(err)) throw err; // already deleted
  }
  return done;
}

function needsCleanup(job: Job): boolean {
  const { metadata, spec } = job;
  return spec.ttlSecondsAfterFinished != null && !metadata.deletionTimestamp && finishedConditionOf(job) !== undefined;
}

/**
 * Expiry in ms since the epoch.
 * @throws Error when the finish time is missing
 */
function expiresAt(job: Job): number {
  const ended = parseTime(finishedConditionOf(job)?.lastTransitionTime ?? "");
  if (ended === undefined) throw new Error(`unable to find the time when the Job ${keyOf(job)} finished`);
  return ended + (job.spec.ttlSecondsAfterFinished ?? 0) * 1000;
}
