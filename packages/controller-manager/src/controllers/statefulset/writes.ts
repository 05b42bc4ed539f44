import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { isAlreadyExists, isConflict, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { toKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { StatefulSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { PersistentVolumeClaim, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { persistentVolumeClaims, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { ControllerContext } from "../../controller-context.ts";
import { desiredOwners } from "./claim-retention.ts";
import { claimsOf, hasIdentity, hasStorage, newClaim, ordinalOf, withIdentity, withStorage } from "./identity.ts";
import type { Action, Step } from "./plan.ts";

interface StatefulSetContext extends ControllerContext {
  readonly claims: SharedInformer<PersistentVolumeClaim>;
}

type ApplyAction = (ctx: StatefulSetContext, set: StatefulSet, pod: Pod, signal: AbortSignal) => Promise<void>;

/**
 * Executes one step and records an Event on the StatefulSet.
 * @throws the client's error, after recording an Event; AlreadyExists, without an Event, for a Pod that the cache does
 * not show yet
 * Source: pkg/controller/statefulset/stateful_pod_control.go
 */
export function applyStep(ctx: StatefulSetContext, set: StatefulSet, { action, pod }: Step, signal: AbortSignal): Promise<void> {
  return actions[action](ctx, set, pod, signal);
}

const actions: Readonly<Record<Action, ApplyAction>> = {
  async create(ctx, set, pod, signal) {
    const { client } = ctx;
    const created = await recordingFailure(ctx, set, pod, "create", async () => {
      await createClaims(ctx, set, pod, signal);
      return client.create<Pod>(pods, pod, { signal });
    });
    await recordingFailure(ctx, set, pod, "update", () => updateClaimOwners(ctx, set, created, signal));
    recordEvent(ctx, set, pod, "create");
  },
  async delete(ctx, set, pod, signal) {
    const { namespace, name = "", uid } = pod.metadata;
    const preconditions = uid === undefined ? {} : { preconditions: { uid } };
    await recordingFailure(ctx, set, pod, "delete", () =>
      ctx.client.delete(pods, { namespace, name }, { ...preconditions, signal }).catch((err) => {
        if (!isNotFound(err)) throw err; // already deleted
      }),
    );
    recordEvent(ctx, set, pod, "delete");
  },
  "delete failed"(ctx, set, pod, signal) {
    const message = `StatefulSet ${set.metadata.namespace}/${set.metadata.name} is recreating failed Pod ${pod.metadata.name}`;
    ctx.recorder.event(set, "Warning", "RecreatingFailedPod", message);
    return actions.delete(ctx, set, pod, signal);
  },
  async repair(ctx, set, pod, signal) {
    if (!hasIdentity(set, pod) || !hasStorage(set, pod)) {
      await recordingFailure(ctx, set, pod, "update", async () => {
        if (!hasStorage(set, pod)) await createClaims(ctx, set, pod, signal);
        await updatePod(ctx, set, pod, signal);
      });
      recordEvent(ctx, set, pod, "update");
    }
    await recordingFailure(ctx, set, pod, "update", () => updateClaimOwners(ctx, set, pod, signal));
  },
  "update claim owners": (ctx, set, pod, signal) => updateClaimOwners(ctx, set, pod, signal),
};

const reasons = { create: "Create", update: "Update", delete: "Delete" } as const;

/** Records an Event for a failure and rethrows it; no Event for AlreadyExists, which results from a stale cache. */
async function recordingFailure<T>(
  ctx: StatefulSetContext,
  set: StatefulSet,
  pod: Pod,
  verb: keyof typeof reasons,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (err) {
    if (!isAlreadyExists(err)) recordEvent(ctx, set, pod, verb, err);
    throw err;
  }
}

function recordEvent(ctx: StatefulSetContext, set: StatefulSet, pod: Pod, verb: keyof typeof reasons, err?: unknown): void {
  const what = `${verb} Pod ${pod.metadata.name} in StatefulSet ${set.metadata.name}`;
  if (err === undefined) ctx.recorder.event(set, "Normal", `Successful${reasons[verb]}`, `${what} successful`);
  else ctx.recorder.event(set, "Warning", `Failed${reasons[verb]}`, `${what} failed error: ${messageOf(err)}`);
}

/** Updates the Pod; after a conflict retries once on the current Pod. */
async function updatePod(ctx: StatefulSetContext, set: StatefulSet, pod: Pod, signal: AbortSignal): Promise<void> {
  const repaired = (found: Pod): Pod => withStorage(set, withIdentity(set, found));
  try {
    await ctx.client.update<Pod>(pods, repaired(pod), { signal });
  } catch (err) {
    if (!isConflict(err)) throw err;
    const { namespace, name = "" } = pod.metadata;
    const found = await ctx.client.get<Pod>(pods, { namespace, name }, { signal });
    await ctx.client.update<Pod>(pods, repaired(found), { signal });
  }
}

/**
 * Creates missing claims; existing ones are not changed.
 * @throws Error that names every claim that could not be created
 */
async function createClaims(ctx: StatefulSetContext, set: StatefulSet, pod: Pod, signal: AbortSignal): Promise<void> {
  const { claims } = ctx;
  const failures: string[] = [];
  for (const claim of claimsOf(set, ordinalOf(pod)).values()) {
    const { name } = claim;
    const there = claims.lister.get(toKey(set.metadata.namespace, name));
    if (there?.metadata.deletionTimestamp) failures.push(`pvc ${name} is being deleted`);
    if (there !== undefined) continue;
    try {
      await ctx.client.create<PersistentVolumeClaim>(persistentVolumeClaims, newClaim(set, claim), { signal });
      const message = `create Claim ${name} Pod ${pod.metadata.name} in StatefulSet ${set.metadata.name} success`;
      ctx.recorder.event(set, "Normal", "SuccessfulCreate", message);
    } catch (err) {
      if (isAlreadyExists(err)) continue; // the cache does not show it yet
      failures.push(`failed to create PVC ${name}: ${messageOf(err)}`);
      const what = `create Claim ${name} for Pod ${pod.metadata.name} in StatefulSet ${set.metadata.name}`;
      ctx.recorder.event(set, "Warning", "FailedCreate", `${what} failed error: ${messageOf(err)}`);
    }
  }
  if (failures.length > 0) throw new Error(failures.length === 1 ? failures[0] : `[${failures.join(", ")}]`);
}

/** Updates the owner references of claims according to the retention policy; no-op when the feature gate is off. */
async function updateClaimOwners(ctx: StatefulSetContext, set: StatefulSet, pod: Pod, signal: AbortSignal): Promise<void> {
  const { claims } = ctx;
  if (!ctx.featureGates.enabled("StatefulSetAutoDeletePVC")) return;
  for (const { name } of claimsOf(set, ordinalOf(pod)).values()) {
    // A claim that is not cached yet is updated in a later reconciliation.
    const claim = claims.lister.get(toKey(set.metadata.namespace, name));
    const owners = claim === undefined ? undefined : desiredOwners(set, pod, claim);
    if (claim === undefined || owners === undefined) continue;
    const settled = { ...claim, metadata: { ...claim.metadata, ownerReferences: owners } };
    await ctx.client.update<PersistentVolumeClaim>(persistentVolumeClaims, settled, { signal });
  }
}
