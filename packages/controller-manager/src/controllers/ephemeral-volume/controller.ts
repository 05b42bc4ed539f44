import { type Controller, done, newController, type Result } from "@coxswain/apimachinery/controller/controller";
import { enqueueBy, type SourceQueue } from "@coxswain/apimachinery/controller/sources";
import { messageOf } from "@coxswain/apimachinery/errors/message";
import { keyOf, type ObjectKey, toKey } from "@coxswain/apimachinery/meta/object-key";
import { newControllerRef } from "@coxswain/apimachinery/meta/owner-references";
import type { MetricsRegistry } from "@coxswain/apimachinery/metrics/registry";
import type { PersistentVolumeClaim, Pod, Volume } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { persistentVolumeClaims, pods } from "@coxswain/apimachinery/schema/kinds/resources";
import { claimNameOf, notMadeFor } from "@coxswain/apimachinery/volumes/claims-of-pod";
import type { ControllerContext } from "../../controller-context.ts";
import { podsByClaim } from "../../volumes/pods-by-claim.ts";

/**
 * ephemeral-volume-controller: creates the claim `<pod>-<volume>` of each generic ephemeral volume, owned by the Pod. The
 * copied Pod fields are immutable, so Pods are enqueued only when added and when one of their claims is deleted.
 * Source: pkg/controller/volume/ephemeral
 */
export function newEphemeralVolumeController(ctx: ControllerContext): Controller {
  const podInformer = ctx.informers.for<Pod>(pods);
  const claims = ctx.informers.for<PersistentVolumeClaim>(persistentVolumeClaims);
  const usersOf = podsByClaim(podInformer);
  const created = creationMetrics(ctx.registry);

  const ensureClaim = async (pod: Pod, volume: Volume, signal: AbortSignal): Promise<void> => {
    const { namespace } = pod.metadata;
    const name = claimNameOf(pod, volume) ?? "";
    const existing = claims.lister.get(toKey(namespace, name));
    if (existing !== undefined) {
      const conflict = notMadeFor(pod, existing);
      if (conflict !== undefined) throw new Error(conflict);
      return;
    }
    const { metadata, spec = {} } = volume.ephemeral?.volumeClaimTemplate ?? {};
    const { annotations, labels } = metadata ?? {};
    const claim: PersistentVolumeClaim = {
      metadata: {
        name,
        ...(namespace === undefined ? {} : { namespace }),
        ...(annotations === undefined ? {} : { annotations }),
        ...(labels === undefined ? {} : { labels }),
        ownerReferences: [newControllerRef(pod, pods)],
      },
      spec,
    };
    created.attempted();
    try {
      await ctx.client.create(persistentVolumeClaims, claim, { signal });
    } catch (err) {
      created.failed();
      throw new Error(`create PVC ${name}: ${messageOf(err)}`, { cause: err });
    }
  };

  return newController({
    name: "ephemeral_volume",
    sources: [
      enqueueBy(podInformer, (queue) => ({ added: (pod) => look(queue, [pod]) })),
      enqueueBy(claims, (queue) => ({ deleted: (claim) => look(queue, usersOf(keyOf(claim))) })),
    ],
    async reconcile(key: ObjectKey, signal): Promise<Result> {
      const pod = podInformer.lister.get(key);
      if (pod === undefined || pod.metadata.deletionTimestamp) return done;
      for (const volume of pod.spec.volumes ?? []) {
        if (volume.ephemeral === undefined) continue;
        try {
          await ensureClaim(pod, volume, signal);
        } catch (err) {
          const message = `ephemeral volume ${volume.name}: ${messageOf(err)}`;
          ctx.recorder.event(pod, "Warning", "FailedBinding", message);
          throw new Error(`pod ${key}, ${message}`, { cause: err });
        }
      }
      return done;
    },
    workers: ctx.config.concurrency.ephemeralVolume,
    log: ctx.log,
    clock: ctx.clock,
    metrics: ctx.queueMetrics,
  });
}

function look({ enqueue }: SourceQueue, candidates: readonly Pod[]): void {
  for (const pod of candidates) {
    const { metadata, spec } = pod;
    if (!metadata.deletionTimestamp && spec.volumes?.some(({ ephemeral }) => ephemeral !== undefined)) enqueue(keyOf(pod));
  }
}

function creationMetrics(registry: MetricsRegistry) {
  const attempts = registry.counter({
    name: "ephemeral_volume_controller_create_total",
    help: "Number of PersistenVolumeClaims creation requests",
  });
  const failures = registry.counter({
    name: "ephemeral_volume_controller_create_failures_total",
    help: "Number of PersistenVolumeClaims creation requests",
  });
  return { attempted: () => attempts.inc(), failed: () => failures.inc() };
}
