import { hasCause, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { newControllerRef } from "@coxswain/apimachinery/objects/meta/owner-references";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { jobs, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { forEachLimited } from "@coxswain/apimachinery/process/event-loop/for-each-limited";
import { deleteExpectedPod } from "../../pods/apply-pod-changes.ts";
import { createPod, deletePod, slowStartBatch } from "../../pods/pod-control.ts";
import type { JobSync } from "./context.ts";
import type { PodPlan } from "./pod-plan.ts";
import { podBuilder } from "./pods.ts";
import { uidOf } from "./tracking.ts";
import { hasTrackingFinalizer, removeFinalizerPatch } from "./tracking-finalizer.ts";

/** Result of creating or deleting Pods. */
interface Outcome {
  /** Change of the number of active Pods. */
  readonly change: number;
  /** The first failure. */
  readonly error?: unknown;
}

/** Creates or deletes the Pods of the plan. Failures do not stop the other requests; the first one is returned. */
export async function applyPlan(sync: JobSync, plan: PodPlan | undefined): Promise<Outcome> {
  if (plan === undefined) return { change: 0 };
  if (plan.create.length > 0) return createPods(sync, plan.create);
  if (plan.delete.length === 0) return { change: 0 };
  const { ctx } = sync;
  const { expectations } = ctx;
  expectations.expectDeletions(sync.key, plan.delete.map(uidOf));
  ctx.log.v(4)?.info("Too many pods running for job", { job: sync.key, deleting: plan.delete.length });
  const { count, error } = await forEachPod(plan.delete, async (pod) => {
    try {
      // The finalizer is removed before the deletion so that a surplus Pod is not counted as failed.
      if (hasTrackingFinalizer(pod)) await removeFinalizer(sync, pod);
    } catch (err) {
      expectations.deletionObserved(sync.key, uidOf(pod));
      throw err;
    }
    await deleteExpectedPod(ctx, expectations, sync.job, pod, sync.signal);
  });
  return { change: -count, error };
}

async function createPods({ ctx, key, job, tracked, signal }: JobSync, indexes: PodPlan["create"]): Promise<Outcome> {
  const { expectations } = ctx;
  expectations.expectCreations(key, indexes.length);
  ctx.log.v(4)?.info("Too few pods running", { job: key, creating: indexes.length });
  const podFor = podBuilder(job, tracked);
  const ref = newControllerRef(job, jobs);
  const { succeeded, error } = await slowStartBatch(indexes.length, async (i) => {
    const { template, generateName } = podFor(indexes[i]);
    try {
      await createPod(ctx, job, template, ref, signal, generateName);
    } catch (err) {
      // As upstream: every creation in a terminating namespace fails, so the error is ignored and not retried.
      if (!hasCause(err, "NamespaceTerminating")) throw err;
    }
  });
  // Failed and unattempted creations produce no watch event.
  for (let i = succeeded; i < indexes.length; i++) expectations.creationObserved(key);
  return { change: succeeded, error };
}

/** Deletes the active Pods of a failed Job. Their finalizers stay until the Pods are counted. */
export async function deleteAll({ ctx, job, signal }: JobSync, active: readonly Pod[]): Promise<Outcome> {
  const { count, error } = await forEachPod(active, async (pod) => void (await deletePod(ctx, job, pod, signal)));
  return { change: -count, error };
}

/**
 * Removes the tracking finalizer from Pods that are recorded in the stored status. The removals stay expected until
 * the informer cache shows them.
 * @returns uids of the Pods without the finalizer, and the first failure
 */
export async function removeFinalizers(
  sync: JobSync,
  podsWithFinalizer: readonly Pod[],
): Promise<{ uids: ReadonlySet<string>; error?: unknown }> {
  const { ctx, key } = sync;
  const uids = new Set<string>();
  if (sync.tracked) ctx.finalizerExpectations.expect(key, podsWithFinalizer.map(uidOf));
  const { error } = await forEachPod(podsWithFinalizer, async (pod) => {
    try {
      await removeFinalizer(sync, pod);
    } catch (err) {
      ctx.finalizerExpectations.observed(key, uidOf(pod)); // no watch event will follow
      throw err;
    }
    uids.add(uidOf(pod));
  });
  return { uids, error };
}

async function removeFinalizer({ ctx, signal }: JobSync, { metadata }: Pod): Promise<void> {
  const { namespace, name = "" } = metadata;
  try {
    await ctx.client.patch(
      pods,
      { namespace, name },
      { type: "strategic", body: removeFinalizerPatch },
      { readsMetadataOnly: true, signal },
    );
  } catch (err) {
    if (!isNotFound(err)) throw err;
    // The Pod has been deleted already.
  }
}

/** A Job may have any number of Pods to be changed at once; those of other Jobs share the client's rate limit with them. */
const podsAtOnce = 50;

async function forEachPod(all: readonly Pod[], work: (pod: Pod) => Promise<void>): Promise<{ count: number; error?: unknown }> {
  let count = 0;
  const errors: unknown[] = [];
  await forEachLimited(all, podsAtOnce, async (pod) => {
    try {
      await work(pod);
      count++;
    } catch (err) {
      errors.push(err);
    }
  });
  return { count, ...(errors.length > 0 && { error: errors[0] }) };
}
