import { type Controller, done, newController, type Result } from "@coxswain/apimachinery/controller/controller";
import { enqueueBy, enqueueSelf, needsSynced } from "@coxswain/apimachinery/controller/sources";
import { isNotFound } from "@coxswain/apimachinery/errors/predicates";
import { newNewest } from "@coxswain/apimachinery/informers/newest";
import { keyOf, type ObjectKey } from "@coxswain/apimachinery/meta/object-key";
import type { PersistentVolume, PersistentVolumeClaim, Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { persistentVolumeClaims, persistentVolumes, pods, storageClasses } from "@coxswain/apimachinery/schema/kinds/resources";
import type { StorageClass } from "@coxswain/apimachinery/schema/kinds/storage/v1";
import type { ControllerContext, Runnable } from "../../controller-context.ts";
import { isTerminated } from "../../volumes/pod-volumes.ts";
import { podsByClaim } from "../../volumes/pods-by-claim.ts";
import { newBindingWriter } from "./binding.ts";
import { decideClaim } from "./decide-claim.ts";
import { decideVolume } from "./decide-volume.ts";
import { withDeletionFinalizers } from "./finalizers.ts";
import { countVolumes, newLifecycles } from "./metrics.ts";
import { withMigration } from "./migration.ts";
import { newOperations } from "./operations.ts";
import { provision } from "./provision.ts";
import { reclaim } from "./reclaim.ts";
import { claimKeyOf, type Room, say } from "./room.ts";

/**
 * persistentvolume-controller: binds claims to volumes, provisions volumes, and reclaims volumes whose claim was
 * deleted. A binding is a pair of references (`spec.claimRef`, `spec.volumeName`), and the volume is written first.
 * Incomplete bindings are completed regardless of who started them.
 *
 * Claims and volumes have one worker each: concurrent searches would select the same volume. All objects are
 * reconciled again every `--pvclaimbinder-sync-period`.
 * Source: pkg/controller/volume/persistentvolume
 */
export function newPersistentVolumeBinder(ctx: ControllerContext): Runnable {
  const volumeInformer = ctx.informers.for<PersistentVolume>(persistentVolumes);
  const claimInformer = ctx.informers.for<PersistentVolumeClaim>(persistentVolumeClaims);
  const classes = ctx.informers.for<StorageClass>(storageClasses);
  const podInformer = ctx.informers.for<Pod>(pods);
  const [volumes, claims] = [newNewest(volumeInformer), newNewest(claimInformer)];
  const room: Room = {
    ctx,
    volumes,
    claims,
    classes,
    podsOf: podsByClaim(podInformer),
    write: newBindingWriter(ctx.client, ctx.recorder, volumes, claims),
    operations: newOperations(ctx.clock, ctx.log),
    lifecycles: newLifecycles(ctx.registry, ctx.clock),
  };
  countVolumes(ctx.registry, volumes, claims);

  const others = [needsSynced(volumeInformer), needsSynced(claimInformer), needsSynced(classes), needsSynced(podInformer)];
  const common = { workers: 1, log: ctx.log, clock: ctx.clock, metrics: ctx.queueMetrics };
  const claimLoop: Controller = newController({
    ...common,
    name: "claims",
    sources: [enqueueSelf(claimInformer), ...others],
    reconcile: (key, signal) => syncClaim(room, key, signal),
  });
  const volumeLoop: Controller = newController({
    ...common,
    name: "volumes",
    sources: [
      enqueueSelf(volumeInformer),
      // The volume of a deleted claim is reclaimed immediately.
      enqueueBy(claimInformer, ({ enqueue }) => ({
        deleted(claim) {
          room.lifecycles.forget(keyOf(claim));
          if (claim.spec.volumeName) enqueue(claim.spec.volumeName);
        },
      })),
      ...others,
    ],
    reconcile: (key, signal) => syncVolume(room, key, claimLoop.enqueue, signal),
  });
  volumeInformer.addHandler({
    deleted(volume) {
      room.lifecycles.end(volume.metadata.name ?? "");
      if (volume.spec.claimRef !== undefined) claimLoop.enqueue(claimKeyOf(volume));
    },
  });

  return {
    async run(signal) {
      const lookAtAll = (): void => {
        for (const claim of claimInformer.lister.list()) claimLoop.enqueue(keyOf(claim));
        for (const volume of volumeInformer.lister.list()) volumeLoop.enqueue(keyOf(volume));
      };
      const resync = ctx.clock.every(ctx.config.volumes.binderSyncPeriodMs, lookAtAll);
      try {
        await Promise.all([claimLoop.run(signal), volumeLoop.run(signal), room.operations.run(signal)]);
      } finally {
        resync.cancel();
      }
    },
  };
}

async function syncClaim(room: Room, key: ObjectKey, signal: AbortSignal): Promise<Result> {
  const { ctx, write } = room;
  const known = room.claims.get(key);
  if (known === undefined) return done;
  const migrated = withMigration(known, "claim", ctx.featureGates);
  const claim = migrated === undefined ? known : await write.updateClaim(migrated, signal);
  const step = decideClaim(claim, {
    volume: room.volumes.get,
    volumes: room.volumes.list,
    storageClass: room.classes.lister.get,
    waitingPods: () => namesOfWaiting(room.podsOf(key)),
  });
  switch (step.do) {
    case "bind":
      try {
        await write.bind(step.volume, claim, signal);
      } catch (err) {
        room.lifecycles.fail(key);
        throw err;
      }
      room.lifecycles.end(key);
      return done;
    case "provision":
      provision(room, claim);
      return done;
    case "wait":
      if (step.notice !== undefined) say(room, claim, step.notice);
      await write.setClaimPhase(claim, "Pending", undefined, signal);
      return done;
    case "lose":
      await write.setClaimPhase(claim, "Lost", undefined, signal, step.notice);
      return done;
    case "fail":
      say(room, claim, step.notice);
      throw new Error(step.error);
  }
}

function namesOfWaiting(users: readonly Pod[]): string[] {
  return users.filter((pod) => !isTerminated(pod) && !pod.spec.nodeName).map(({ metadata }) => metadata.name ?? "");
}

async function syncVolume(
  room: Room,
  key: ObjectKey,
  wakeClaim: (claim: ObjectKey) => void,
  signal: AbortSignal,
): Promise<Result> {
  const { ctx, write } = room;
  const known = room.volumes.get(key);
  if (known === undefined) return done;
  const migrated = withMigration(known, "volume", ctx.featureGates);
  const changed = withDeletionFinalizers(migrated ?? known, ctx.featureGates) ?? migrated;
  const volume = changed === undefined ? known : await write.updateVolume(changed, signal);
  const claim = await findClaim(room, volume, signal);
  const step = decideVolume(volume, claim);
  switch (step.do) {
    case "set phase":
      await write.setVolumePhase(volume, step.phase, signal);
      return done;
    case "reclaim": {
      const released = isOver(volume) ? volume : await write.setVolumePhase(volume, "Released", signal);
      await reclaim(room, released, signal);
      return done;
    }
    case "wake claim":
      wakeClaim(claimKeyOf(volume));
      return done;
    case "complain":
      say(room, volume, step.toVolume);
      if (claim !== undefined) say(room, claim, step.toClaim);
      return done;
    case "unbind":
      await write.unbind(volume, signal);
      return done;
  }
}

/** Reads the claim from the API server when it is not cached: a stale cache must not cause a volume in use to be reclaimed. */
async function findClaim(room: Room, volume: PersistentVolume, signal: AbortSignal): Promise<PersistentVolumeClaim | undefined> {
  const { claimRef } = volume.spec;
  if (!claimRef?.uid) return undefined;
  const cached = room.claims.get(claimKeyOf(volume));
  if (cached !== undefined || isOver(volume)) return cached;
  const { namespace, name = "" } = claimRef;
  try {
    return await room.ctx.client.get<PersistentVolumeClaim>(persistentVolumeClaims, { namespace, name }, { signal });
  } catch (err) {
    if (isNotFound(err)) return undefined;
    throw err;
  }
}

/** Whether the volume has been released before; phase Failed is kept so that users see the failure. */
function isOver({ status }: PersistentVolume): boolean {
  return status?.phase === "Released" || status?.phase === "Failed";
}
