import type { Expectations } from "@coxswain/apimachinery/controller/expectations";
import { hasCause } from "@coxswain/apimachinery/errors/predicates";
import type { ResourceRef } from "@coxswain/apimachinery/meta/group-version";
import { keyOf } from "@coxswain/apimachinery/meta/object-key";
import { newControllerRef } from "@coxswain/apimachinery/meta/owner-references";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type { Pod, PodTemplateSpec } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { createPod, deletePod, type PodWriter, slowStartBatch } from "./pod-control.ts";

export interface PodChanges {
  readonly owner: KubeObject;
  readonly ownerResource: ResourceRef;
  /** One for each Pod. */
  readonly create: readonly PodTemplateSpec[];
  readonly delete: readonly Pod[];
}

/** The first failures, when there are any. */
export interface PodChangeFailures {
  readonly creating?: unknown;
  readonly deleting?: unknown;
}

/**
 * Creates and deletes Pods of an owner and expects to see it; everything is tried, but creating stops where slow start
 * does. What a namespace refuses that is on its way out is no failure.
 */
export async function changePods(
  ctx: PodWriter,
  expectations: Expectations,
  { owner, ownerResource, create, delete: doomed }: PodChanges,
  signal: AbortSignal,
): Promise<PodChangeFailures> {
  if (create.length === 0 && doomed.length === 0) return {};
  const key = keyOf(owner);
  expectations.expect(
    key,
    create.length,
    doomed.map(({ metadata }) => metadata.uid ?? ""),
  );
  const ref = newControllerRef(owner, ownerResource);
  const { succeeded, error: creating } = await slowStartBatch(create.length, async (index) => {
    try {
      await createPod(ctx, owner, create[index] as PodTemplateSpec, ref, signal);
    } catch (err) {
      if (!hasCause(err, "NamespaceTerminating")) throw err; // nothing will come of it; that it never comes must not hold us up
    }
  });
  // What failed and what was not tried will not be seen.
  for (let i = succeeded; i < create.length; i++) expectations.creationObserved(key);
  const deletions = await Promise.allSettled(doomed.map((pod) => deleteExpected(ctx, expectations, owner, pod, signal)));
  const failed = deletions.find((result) => result.status === "rejected");
  return {
    ...(creating === undefined ? {} : { creating }),
    ...(failed === undefined ? {} : { deleting: failed.reason }),
  };
}

/** Deletes a Pod whose deletion is expected; not any more when it failed or somebody was faster, for no event may tell. */
export async function deleteExpected(
  ctx: PodWriter,
  expectations: Expectations,
  owner: KubeObject,
  pod: Pod,
  signal: AbortSignal,
): Promise<void> {
  let willBeSeen = false;
  try {
    willBeSeen = await deletePod(ctx, owner, pod, signal);
  } finally {
    if (!willBeSeen) expectations.deletionObserved(keyOf(owner), pod.metadata.uid ?? "");
  }
}
