import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { keyOf } from "@coxswain/apimachinery/objects/meta/object-key";
import type { PersistentVolume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { persistentVolumes } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { migratedTo } from "@coxswain/apimachinery/volumes/annotations";
import { classNameOf } from "@coxswain/apimachinery/volumes/matching";
import { driverOf } from "@coxswain/apimachinery/volumes/migration";
import { newOperations, observed } from "@coxswain/apimachinery/volumes/storage-operations";
import { operationMetrics } from "../../volumes/operation-metrics.ts";
import { isTerminated } from "../../volumes/pod-volumes.ts";
import { withoutFinalizer } from "../../volumes/protection.ts";
import { type BinderContext, claimKeyOf, recordEvent } from "./context.ts";
import { ownDeletion } from "./finalizers.ts";
import { deleteFolder } from "./host-path.ts";
import { isReleased } from "./plan-volume.ts";
import { deleterOf, pluginOf } from "./plugins.ts";
import { recycleByPod } from "./recycler.ts";

/**
 * Applies the reclaim policy to a released volume. Recycling and deletion run in the background; a failure is stored
 * in the volume's phase and retried with every resync.
 * Source: pv_controller.go reclaimVolume
 */
export async function reclaim(ctx: BinderContext, volume: PersistentVolume, signal: AbortSignal): Promise<void> {
  // Migrated to CSI: the external provisioner deletes the volume.
  if (volume.metadata.annotations?.[migratedTo]) return;
  const { name = "", uid = "" } = volume.metadata;
  switch (volume.spec.persistentVolumeReclaimPolicy) {
    case "Retain":
      return;
    case "Recycle":
      ctx.operations.start(`recycle-${name}[${uid}]`, (stop) => recycle(ctx, volume, stop));
      return;
    case "Delete":
      ctx.lifecycles.begin(name, deleterName(ctx, volume), "delete");
      ctx.operations.start(`delete-${name}[${uid}]`, (stop) => deleteVolume(ctx, volume, stop));
      return;
    default:
      await ctx.write.setVolumePhase(volume, "Failed", signal, {
        type: "Warning",
        reason: "VolumeUnknownReclaimPolicy",
        message: "Volume has unrecognized PersistentVolumeReclaimPolicy",
      });
  }
}

/** Reads the current volume; undefined when it is deleted or no longer released. */
async function stillReleased(
  ctx: BinderContext,
  { metadata }: PersistentVolume,
  signal: AbortSignal,
): Promise<PersistentVolume | undefined> {
  try {
    const volume = await ctx.client.get<PersistentVolume>(persistentVolumes, { name: metadata.name ?? "" }, { signal });
    return isReleased(volume, ctx.claims.get(claimKeyOf(volume))) ? volume : undefined;
  } catch (err) {
    if (isNotFound(err)) return undefined;
    throw err;
  }
}

async function recycle(ctx: BinderContext, released: PersistentVolume, signal: AbortSignal): Promise<void> {
  const volume = await stillReleased(ctx, released, signal);
  if (volume === undefined) return;
  const key = claimKeyOf(volume);
  const users = ctx.podsOf(key).filter((pod) => !isTerminated(pod));
  // If a claim of that name exists it is a new one, and the Pods use that claim.
  if (users.length > 0 && ctx.claims.get(key) === undefined) {
    const names = [...new Set(users.map(keyOf))].sort().join(",");
    recordEvent(ctx, volume, { type: "Normal", reason: "VolumeFailedRecycle", message: `Volume is used by pods: ${names}` });
    return;
  }
  const failed = async (message: string): Promise<void> => {
    await ctx.write.setVolumePhase(volume, "Failed", signal, { type: "Warning", reason: "VolumeFailedRecycle", message });
  };
  if (pluginOf(volume.spec)?.recycles !== true) return failed("No recycler plugin found for the volume!");
  const { hostPath, nfs } = ctx.config.volumes.recyclers;
  const config = volume.spec.hostPath === undefined ? nfs : hostPath;
  try {
    await recycleByPod(
      ctx.client,
      volume,
      config,
      (type, message) => recordEvent(ctx, volume, { type, reason: "RecyclerPod", message: `Recycler pod: ${message}` }),
      signal,
    );
  } catch (err) {
    if (signal.aborted) throw err;
    return failed(`Recycle failed: ${messageOf(err)}`);
  }
  recordEvent(ctx, volume, { type: "Normal", reason: "VolumeRecycled", message: "Volume recycled" });
  await ctx.write.unbind(volume, signal);
}

async function deleteVolume(ctx: BinderContext, released: PersistentVolume, signal: AbortSignal): Promise<void> {
  const volume = await stillReleased(ctx, released, signal);
  if (volume === undefined) return;
  const honorsPolicy = ctx.featureGates.enabled("HonorPVReclaimPolicy");
  if (volume.metadata.deletionTimestamp && !honorsPolicy) return;
  const { name = "" } = volume.metadata;
  try {
    const plugin = deleterOf(volume);
    if (plugin === undefined) return; // deleted by its external provisioner
    const { hostPath } = volume.spec;
    if (hostPath === undefined)
      throw new Error(`Failed to create deleter for volume ${JSON.stringify(name)}: spec.PersistentVolumeSource.HostPath is nil`);
    await observed(newOperations(operationMetrics(ctx.registry).duration, ctx.clock)(plugin.name, "volume_delete"), () =>
      deleteFolder(hostPath.path),
    );
  } catch (err) {
    ctx.lifecycles.fail(name);
    const message = messageOf(err);
    await ctx.write.setVolumePhase(volume, "Failed", signal, { type: "Warning", reason: "VolumeFailedDelete", message });
    throw err;
  }
  if (volume.metadata.finalizers?.includes(ownDeletion))
    await ctx.write.updateVolume(withoutFinalizer(volume, ownDeletion), signal);
  if (!volume.metadata.deletionTimestamp) await ctx.client.delete(persistentVolumes, { name }, { signal });
}

/** Plugin label in metrics; bounded in cardinality although annotations may hold arbitrary names. */
function deleterName(ctx: BinderContext, volume: PersistentVolume): string {
  const { classes } = ctx;
  try {
    const plugin = deleterOf(volume);
    if (plugin !== undefined) return plugin.name;
  } catch {
    return "N/A";
  }
  const provisioner = classes.lister.get(classNameOf(volume))?.provisioner;
  return provisioner === undefined ? "N/A" : (driverOf(provisioner, ctx.featureGates) ?? provisioner);
}
