import { type Controller, done, type Result } from "@coxswain/apimachinery/controller/controller";
import { enqueueBy, enqueueSelf } from "@coxswain/apimachinery/controller/sources";
import type { Verdict } from "@coxswain/apimachinery/decisions/decision";
import type { Outcome } from "@coxswain/apimachinery/decisions/decision-log";
import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { keyOf, type ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { PersistentVolume, PersistentVolumeClaim, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { persistentVolumeClaims } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { classNameOf } from "@coxswain/apimachinery/volumes/matching";
import type { ControllerContext, Runnable } from "../../controller-context.ts";
import { defineController, runTogether } from "../../define-controller.ts";
import { isTerminated } from "../../volumes/pod-volumes.ts";
import { type BinderContext, claimKeyOf, newBinderContext, recordEvent } from "./context.ts";
import { withDeletionFinalizers } from "./finalizers.ts";
import { withMigration } from "./migration.ts";
import { type EventData, planClaim } from "./plan-claim.ts";
import { planVolume } from "./plan-volume.ts";
import { provision } from "./provision.ts";
import { reclaim } from "./reclaim.ts";

/**
 * persistentvolume-controller: binds claims to volumes, provisions volumes, and reclaims volumes whose claim was
 * deleted. A binding is a pair of references (`spec.claimRef`, `spec.volumeName`), and the volume is written first.
 * Incomplete bindings are completed regardless of who started them.
 *
 * Claims and volumes have one worker each: concurrent searches would select the same volume. All objects are
 * reconciled again every `--pvclaimbinder-sync-period`.
 * Source: pkg/controller/volume/persistentvolume
 */
export function newPersistentVolumeBinder(base: ControllerContext): Runnable {
  const ctx: BinderContext = newBinderContext(base, { enqueueClaim: (key) => claimQueue.enqueue(key) });
  const { volumeInformer, claimInformer, synced } = ctx;
  const claimQueue: Controller = defineController(ctx, {
    name: "claims",
    sources: [enqueueSelf(claimInformer), ...synced],
    reconcile: reconcileClaim,
    workers: 1,
  });
  const volumeQueue: Controller = defineController(ctx, {
    name: "volumes",
    sources: [
      enqueueSelf(volumeInformer),
      // The volume of a deleted claim is reclaimed immediately.
      enqueueBy(claimInformer, ({ enqueue }) => ({
        deleted(claim) {
          ctx.lifecycles.forget(keyOf(claim));
          if (claim.spec.volumeName) enqueue(claim.spec.volumeName);
        },
      })),
      ...synced,
    ],
    reconcile: reconcileVolume,
    workers: 1,
  });
  volumeInformer.addHandler({
    deleted(volume) {
      ctx.lifecycles.end(volume.metadata.name ?? "");
      if (volume.spec.claimRef !== undefined) ctx.enqueueClaim(claimKeyOf(volume));
    },
  });
  const enqueueAll = (): void => {
    for (const claim of claimInformer.lister.list()) claimQueue.enqueue(keyOf(claim));
    for (const volume of volumeInformer.lister.list()) volumeQueue.enqueue(keyOf(volume));
  };
  return {
    async run(signal) {
      const resync = ctx.clock.every(ctx.config.volumes.binderSyncPeriodMs, enqueueAll);
      try {
        await runTogether(claimQueue, volumeQueue, ctx.operations).run(signal);
      } finally {
        resync.cancel();
      }
    },
  };
}

async function reconcileClaim(ctx: BinderContext, key: ObjectKey, signal: AbortSignal): Promise<Result> {
  const { write } = ctx;
  const known = ctx.claims.get(key);
  if (known === undefined) return done;
  const migrated = withMigration(known, "claim", ctx.featureGates);
  const claim = migrated === undefined ? known : await write.updateClaim(migrated, signal);
  const step = planClaim(claim, {
    volume: ctx.volumes.get,
    volumes: ctx.volumes.list,
    storageClass: ctx.classes.lister.get,
    waitingPods: () => namesOfUnscheduled(ctx.podsOf(key)),
  });
  switch (step.do) {
    case "bind":
      try {
        await write.bind(step.volume, claim, signal);
      } catch (err) {
        ctx.lifecycles.fail(key);
        throw err;
      }
      ctx.lifecycles.end(key);
      return done;
    case "provision":
      provision(ctx, claim);
      return { decision: provisioning(ctx, claim) };
    case "wait":
      if (step.event !== undefined) recordEvent(ctx, claim, step.event);
      await write.setClaimPhase(claim, "Pending", undefined, signal);
      return { decision: step.event ? asDecision("waiting", step.event) : volumeMissing(claim) };
    case "lose":
      await write.setClaimPhase(claim, "Lost", undefined, signal, step.event);
      return { decision: asDecision("failed", step.event) };
    case "fail":
      recordEvent(ctx, claim, step.event);
      throw new Error(step.error);
  }
}

const asDecision = (verdict: Verdict, { reason, message }: EventData): Outcome => ({ verdict, reason, description: message });

function volumeMissing({ spec }: PersistentVolumeClaim): Outcome {
  return {
    verdict: "waiting",
    reason: "VolumeMissing",
    description: `the volume that it names, ${spec.volumeName}, does not exist`,
  };
}

function provisioning({ classes, config }: BinderContext, claim: PersistentVolumeClaim): Outcome {
  const name = classNameOf(claim);
  const storageClass = classes.lister.get(name);
  if (storageClass === undefined) {
    const summary = `its storage class ${name} does not exist, and no volume matches`;
    return {
      verdict: "waiting",
      reason: "StorageClassMissing",
      description: { summary, remedy: "create the class, or name another" },
    };
  }
  const description = config.volumes.dynamicProvisioning
    ? `waits for a volume from the provisioner ${storageClass.provisioner}`
    : "no volume matches, and this cluster provisions none";
  return { verdict: "waiting", reason: "ProvisioningPending", description };
}

function namesOfUnscheduled(users: readonly Pod[]): string[] {
  return users.filter((pod) => !isTerminated(pod) && !pod.spec.nodeName).map(({ metadata }) => metadata.name ?? "");
}

async function reconcileVolume(ctx: BinderContext, key: ObjectKey, signal: AbortSignal): Promise<Result> {
  const { write } = ctx;
  const known = ctx.volumes.get(key);
  if (known === undefined) return done;
  const migrated = withMigration(known, "volume", ctx.featureGates);
  const changed = withDeletionFinalizers(migrated ?? known, ctx.featureGates) ?? migrated;
  const volume = changed === undefined ? known : await write.updateVolume(changed, signal);
  const claim = await findClaim(ctx, volume, signal);
  const step = planVolume(volume, claim);
  switch (step.do) {
    case "set phase":
      await write.setVolumePhase(volume, step.phase, signal);
      return done;
    case "reclaim": {
      const released = wasReleased(volume) ? volume : await write.setVolumePhase(volume, "Released", signal);
      await reclaim(ctx, released, signal);
      return done;
    }
    case "enqueue claim":
      ctx.enqueueClaim(claimKeyOf(volume));
      return done;
    case "report":
      recordEvent(ctx, volume, step.toVolume);
      if (claim !== undefined) recordEvent(ctx, claim, step.toClaim);
      return done;
    case "unbind":
      await write.unbind(volume, signal);
      return done;
  }
}

/** Reads the claim from the API server when it is not cached: a stale cache must not cause a volume in use to be reclaimed. */
async function findClaim(
  ctx: BinderContext,
  volume: PersistentVolume,
  signal: AbortSignal,
): Promise<PersistentVolumeClaim | undefined> {
  const { claimRef } = volume.spec;
  if (!claimRef?.uid) return undefined;
  const cached = ctx.claims.get(claimKeyOf(volume));
  if (cached !== undefined || wasReleased(volume)) return cached;
  const { namespace, name = "" } = claimRef;
  try {
    return await ctx.client.get<PersistentVolumeClaim>(persistentVolumeClaims, { namespace, name }, { signal });
  } catch (err) {
    if (isNotFound(err)) return undefined;
    throw err;
  }
}

/** Whether the volume has been released before; phase Failed is kept so that users see the failure. */
function wasReleased({ status }: PersistentVolume): boolean {
  return status?.phase === "Released" || status?.phase === "Failed";
}
