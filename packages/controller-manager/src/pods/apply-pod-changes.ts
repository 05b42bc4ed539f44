import type { Expectations } from "@coxswain/apimachinery/controller/expectations";
import type { Outcome } from "@coxswain/apimachinery/decisions/decision-log";
import { hasCause } from "@coxswain/apimachinery/objects/errors/predicates";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import { keyOf } from "@coxswain/apimachinery/objects/meta/object-key";
import { newControllerRef } from "@coxswain/apimachinery/objects/meta/owner-references";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Pod, PodTemplateSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { createPod, deletePod, type PodWriter, slowStartBatch } from "./pod-control.ts";

/** Pods to create and delete for one owner. */
interface PodChanges {
  readonly owner: KubeObject;
  readonly ownerResource: ResourceRef;
  /** One template for each Pod to create. */
  readonly create: readonly PodTemplateSpec[];
  readonly delete: readonly Pod[];
}

/** The first failure of each kind, if any. */
interface PodChangeFailures {
  readonly creating?: unknown;
  readonly deleting?: unknown;
}

/**
 * Creates and deletes Pods of an owner and records the expectations. All deletions are attempted; creations stop at
 * the first failed slow-start batch. Errors of a terminating namespace are ignored.
 */
export async function applyPodChanges(
  ctx: PodWriter,
  expectations: Expectations,
  { owner, ownerResource, create, delete: toDelete }: PodChanges,
  signal: AbortSignal,
): Promise<PodChangeFailures> {
  if (create.length === 0 && toDelete.length === 0) return {};
  const key = keyOf(owner);
  expectations.expect(
    key,
    create.length,
    toDelete.map(({ metadata }) => metadata.uid ?? ""),
  );
  const ref = newControllerRef(owner, ownerResource);
  const { succeeded, error: creating } = await slowStartBatch(create.length, async (index) => {
    try {
      await createPod(ctx, owner, create[index]!, ref, signal);
    } catch (err) {
      // As upstream: every creation in a terminating namespace fails, so the error is ignored and not retried.
      if (!hasCause(err, "NamespaceTerminating")) throw err;
    }
  });
  // Failed and unattempted creations produce no watch event.
  for (let i = succeeded; i < create.length; i++) expectations.creationObserved(key);
  const deletions = await Promise.allSettled(toDelete.map((pod) => deleteExpectedPod(ctx, expectations, owner, pod, signal)));
  const failed = deletions.find((result) => result.status === "rejected");
  return {
    ...(creating === undefined ? {} : { creating }),
    ...(failed === undefined ? {} : { deleting: failed.reason }),
  };
}

/**
 * Deletes a Pod with a recorded expectation. The expectation is released when the request fails or the Pod was deleted
 * already, because no watch event may follow.
 */
export async function deleteExpectedPod(
  ctx: PodWriter,
  expectations: Expectations,
  owner: KubeObject,
  pod: Pod,
  signal: AbortSignal,
): Promise<void> {
  let willBeObserved = false;
  try {
    willBeObserved = await deletePod(ctx, owner, pod, signal);
  } finally {
    if (!willBeObserved) expectations.deletionObserved(keyOf(owner), pod.metadata.uid ?? "");
  }
}

/** Decision about an owner whose expectations are not satisfied. */
export const ownWritesPending: Outcome = {
  verdict: "waiting",
  reason: "ExpectationsPending",
  description: "waits to see the pods that it created or deleted last, before it counts them",
};
