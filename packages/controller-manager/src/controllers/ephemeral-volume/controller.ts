import { type Controller, done, type Result } from "@coxswain/apimachinery/controller/controller";
import { enqueueBy, type SourceQueue } from "@coxswain/apimachinery/controller/sources";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { keyOf, type ObjectKey, toKey } from "@coxswain/apimachinery/objects/meta/object-key";
import { newControllerRef } from "@coxswain/apimachinery/objects/meta/owner-references";
import type { PersistentVolumeClaim, Pod, Volume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { persistentVolumeClaims, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { claimNameOf, notMadeFor } from "@coxswain/apimachinery/volumes/claims-of-pod";
import type { ControllerContext } from "../../controller-context.ts";
import { defineController } from "../../define-controller.ts";
import { podsByClaim } from "../../volumes/pods-by-claim.ts";
import { type EphemeralVolumeMetrics, newEphemeralVolumeMetrics } from "./metrics.ts";

/**
 * ephemeral-volume-controller: creates the claim `<pod>-<volume>` of each generic ephemeral volume, owned by the Pod. The
 * copied Pod fields are immutable, so Pods are enqueued only when added and when one of their claims is deleted.
 * Source: pkg/controller/volume/ephemeral
 */
export function newEphemeralVolumeController(base: ControllerContext): Controller {
  const podInformer = base.informers.for<Pod>(pods);
  const ctx: EphemeralVolumeContext = {
    ...base,
    pods: podInformer,
    claims: base.informers.for<PersistentVolumeClaim>(persistentVolumeClaims),
    podsOf: podsByClaim(podInformer),
    metrics: newEphemeralVolumeMetrics(base.registry),
  };
  return defineController(ctx, {
    name: "ephemeral_volume",
    sources: [
      enqueueBy(ctx.pods, (queue) => ({ added: (pod) => enqueuePods(queue, [pod]) })),
      enqueueBy(ctx.claims, (queue) => ({ deleted: (claim) => enqueuePods(queue, ctx.podsOf(keyOf(claim))) })),
    ],
    reconcile,
    workers: ctx.config.concurrency.ephemeralVolume,
  });
}

interface EphemeralVolumeContext extends ControllerContext {
  readonly pods: SharedInformer<Pod>;
  readonly claims: SharedInformer<PersistentVolumeClaim>;
  readonly podsOf: (claim: ObjectKey) => Pod[];
  readonly metrics: EphemeralVolumeMetrics;
}

/** Enqueues those of the Pods that have an ephemeral volume and are not being deleted. */
function enqueuePods({ enqueue }: SourceQueue, candidates: readonly Pod[]): void {
  for (const pod of candidates) {
    const { metadata, spec } = pod;
    if (!metadata.deletionTimestamp && spec.volumes?.some(({ ephemeral }) => ephemeral !== undefined)) enqueue(keyOf(pod));
  }
}

async function reconcile(ctx: EphemeralVolumeContext, key: ObjectKey, signal: AbortSignal): Promise<Result> {
  const pod = ctx.pods.lister.get(key);
  if (pod === undefined || pod.metadata.deletionTimestamp) return done;
  for (const volume of pod.spec.volumes ?? []) {
    if (volume.ephemeral === undefined) continue;
    try {
      await ensureClaim(ctx, pod, volume, signal);
    } catch (err) {
      const message = `ephemeral volume ${volume.name}: ${messageOf(err)}`;
      ctx.recorder.event(pod, "Warning", "FailedBinding", message);
      throw new Error(`pod ${key}, ${message}`, { cause: err });
    }
  }
  return done;
}

/** Creates the claim of the volume if it does not exist. @throws Error when it exists and was not created for the Pod */
async function ensureClaim(ctx: EphemeralVolumeContext, pod: Pod, volume: Volume, signal: AbortSignal): Promise<void> {
  const { namespace } = pod.metadata;
  const name = claimNameOf(pod, volume) ?? "";
  const existing = ctx.claims.lister.get(toKey(namespace, name));
  if (existing !== undefined) {
    const conflict = notMadeFor(pod, existing);
    if (conflict !== undefined) throw new Error(conflict);
    return;
  }
  ctx.metrics.attempted();
  try {
    await ctx.client.create(persistentVolumeClaims, newClaim(pod, volume, name), { signal });
  } catch (err) {
    ctx.metrics.failed();
    throw new Error(`create PVC ${name}: ${messageOf(err)}`, { cause: err });
  }
}

/** Pure: the claim of the volume, owned by the Pod. */
function newClaim(pod: Pod, volume: Volume, name: string): PersistentVolumeClaim {
  const { namespace } = pod.metadata;
  const { metadata, spec = {} } = volume.ephemeral?.volumeClaimTemplate ?? {};
  const { annotations, labels } = metadata ?? {};
  return {
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      ...(annotations === undefined ? {} : { annotations }),
      ...(labels === undefined ? {} : { labels }),
      ownerReferences: [newControllerRef(pod, pods)],
    },
    spec,
  };
}
