import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { isAlreadyExists, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { Node, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { nodes, volumeAttachments } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { parseVolumeId, type VolumeId } from "@coxswain/apimachinery/volumes/volume-id";
import type { AttachDetachContext } from "./context.ts";
import type { DesiredVolume } from "./desired-volumes.ts";
import { multiAttachMessage, volumeMessage } from "./messages.ts";
import type { AttachStep } from "./plan.ts";
import type { Progress } from "./progress.ts";
import { type AttachableFlexVolume, newAttachment, pluginOf } from "./volume.ts";

/** Time limit of one attach attempt of a CSI driver. Source: pkg/volume/csi csiTimeout */
const attachLimitMs = 2 * 60_000;
/** Source: pkg/util/goroutinemap/exponentialbackoff */
const firstRetryMs = 500;
const longestRetryMs = 2 * 60_000 + 2000;

/**
 * Executes one planned step.
 * @returns delay in ms until the volume must be reconciled again without a change; Infinity when not needed
 */
export async function applyStep(ctx: AttachDetachContext, id: VolumeId, step: AttachStep, signal: AbortSignal): Promise<number> {
  const progress = ctx.progress.of(id, step.node);
  const now = ctx.clock.monotonic();
  const tooSoonMs = (progress.retry?.at ?? now) - now;
  switch (step.do) {
    case "attach":
      return tooSoonMs > 0 ? tooSoonMs : attach(ctx, id, step.node, progress, signal);
    case "await":
      return awaitDriver(ctx, id, step.node, progress);
    case "attached":
      attached(ctx, id, step.node, progress);
      return Number.POSITIVE_INFINITY;
    case "failed":
      progress.attachingSince ??= now;
      return tooSoonMs > 0 ? tooSoonMs : attachFailed(ctx, id, step.node, progress, step.error);
    case "refuse":
      refuse(ctx, id, step.node, step.others, progress);
      return Number.POSITIVE_INFINITY;
    case "hold":
      progress.unusedSince ??= now;
      return step.forMs;
    case "detach":
      progress.unusedSince ??= now;
      return tooSoonMs > 0 ? tooSoonMs : detach(ctx, id, step, progress, signal);
  }
}

async function attach(
  ctx: AttachDetachContext,
  id: VolumeId,
  node: string,
  progress: Progress,
  signal: AbortSignal,
): Promise<number> {
  const desired = ctx.desired.of(id).get(node);
  if (desired === undefined) return Number.POSITIVE_INFINITY;
  const { client, clock } = ctx;
  progress.attachingSince ??= clock.monotonic();
  if ("flex" in desired.volume) return attachFlex(ctx, desired.volume, node, progress);
  try {
    await client.create(volumeAttachments, newAttachment(desired.volume, node), { signal });
  } catch (err) {
    if (!isAlreadyExists(err)) return attachFailed(ctx, id, node, progress, `attacher.Attach failed: ${messageOf(err)}`);
  }
  return attachLimitMs;
}

/** Attaches through a flex driver. Success and failure both change the FlexAttacher's state, which enqueues the volume. */
async function attachFlex(
  ctx: AttachDetachContext,
  volume: AttachableFlexVolume,
  node: string,
  progress: Progress,
): Promise<number> {
  try {
    await ctx.flex.attach(volume.flex, node);
    return Number.POSITIVE_INFINITY;
  } catch (err) {
    return attachFailed(ctx, volume.id, node, progress, messageOf(err));
  }
}

function awaitDriver(ctx: AttachDetachContext, id: VolumeId, node: string, progress: Progress): number {
  const now = ctx.clock.monotonic();
  progress.attachingSince ??= now;
  const leftMs = progress.attachingSince + attachLimitMs - now;
  if (leftMs > 0) return leftMs;
  const { driver, handle } = parseVolumeId(id) ?? { driver: "", handle: "" };
  const error = `timed out waiting for external-attacher of ${driver} CSI driver to attach volume ${handle}`;
  attachFailed(ctx, id, node, progress, error);
  progress.attachingSince = now;
  return attachLimitMs;
}

function attached(ctx: AttachDetachContext, id: VolumeId, node: string, progress: Progress): void {
  const desired = ctx.desired.of(id).get(node);
  if (desired !== undefined && progress.attachingSince !== undefined) {
    observe(ctx, id, "volume_attach", "success", progress.attachingSince);
    const message = volumeMessage("AttachVolume.Attach succeeded", desired.volume.label, "");
    for (const pod of podsOf(ctx, desired)) ctx.recorder.event(pod, "Normal", "SuccessfulAttachVolume", message);
  }
  ctx.progress.forget(id, node);
}

function attachFailed(ctx: AttachDetachContext, id: VolumeId, node: string, progress: Progress, error: string): number {
  const desired = ctx.desired.of(id).get(node);
  observe(ctx, id, "volume_attach", "fail-unknown", progress.attachingSince);
  if (desired !== undefined) {
    const message = volumeMessage("AttachVolume.Attach failed", desired.volume.label, `: ${error}`);
    for (const pod of podsOf(ctx, desired)) ctx.recorder.event(pod, "Warning", "FailedAttachVolume", message);
  }
  return retryLater(ctx, progress);
}

function refuse(ctx: AttachDetachContext, id: VolumeId, node: string, others: readonly string[], progress: Progress): void {
  const desiredByNode = ctx.desired.of(id);
  const desired = desiredByNode.get(node);
  if (desired === undefined || progress.refused === true) return;
  progress.refused = true;
  const users = others.flatMap((other) => podsOf(ctx, desiredByNode.get(other)));
  for (const pod of podsOf(ctx, desired)) {
    const message = multiAttachMessage(pod, users, desired.volume.label);
    ctx.recorder.event(pod, "Warning", "FailedAttachVolume", message);
  }
}

/** Removes the volume from the node's `status.volumesAttached`, checks that the node does not use it, and then detaches it. */
async function detach(
  ctx: AttachDetachContext,
  id: VolumeId,
  { node, name, forced }: AttachStep & { do: "detach" },
  progress: Progress,
  signal: AbortSignal,
): Promise<number> {
  const { client, clock, log } = ctx;
  progress.detachingSince ??= clock.monotonic();
  progress.leaving = true;
  try {
    await ctx.nodeStatus.write(node, signal);
    if (!forced && (await isInUse(ctx, id, node, signal)))
      throw new Error("volume is still in use by node, according to Node status");
    if (forced) ctx.forcedDetaches.inc();
    if (ctx.flex.owns(id)) {
      await ctx.flex.detach(id, node);
      recordDetached(ctx, id, node);
    } else await client.delete(volumeAttachments, { name }, { signal });
  } catch (err) {
    if (isNotFound(err)) return Number.POSITIVE_INFINITY;
    if (signal.aborted) throw err;
    log.error("DetachVolume.Detach failed", err, { volume: id, node });
    observe(ctx, id, "volume_detach", "fail-unknown", progress.detachingSince);
    progress.leaving = false;
    await ctx.nodeStatus.write(node, signal);
    return retryLater(ctx, progress);
  }
  return Number.POSITIVE_INFINITY;
}

/** Reads the Node from the API server instead of the cache: detaching a volume that is being written to corrupts it. */
async function isInUse(ctx: AttachDetachContext, id: VolumeId, name: string, signal: AbortSignal): Promise<boolean> {
  try {
    const node = await ctx.client.get<Node>(nodes, { name }, { signal });
    return node.status?.volumesInUse?.includes(id) ?? false;
  } catch (err) {
    if (isNotFound(err)) return false;
    throw err;
  }
}

/** Records that the attachment no longer exists. */
export function recordDetached(ctx: AttachDetachContext, id: VolumeId, node: string): void {
  const since = ctx.progress.peek(id, node)?.detachingSince;
  if (since !== undefined) observe(ctx, id, "volume_detach", "success", since);
  ctx.progress.forget(id, node);
}

function retryLater(ctx: AttachDetachContext, progress: Progress): number {
  const waitMs = Math.min((progress.retry?.waitMs ?? firstRetryMs / 2) * 2, longestRetryMs);
  progress.retry = { at: ctx.clock.monotonic() + waitMs, waitMs };
  return waitMs;
}

function observe(ctx: AttachDetachContext, id: VolumeId, operation: string, status: string, since: number | undefined): void {
  const { operations } = ctx;
  const now = ctx.clock.monotonic();
  operations.duration.labels(pluginOf(id), operation, status, "false").observe((now - (since ?? now)) / 1000);
}

function podsOf(ctx: AttachDetachContext, desired: DesiredVolume | undefined): Pod[] {
  return [...(desired?.pods ?? [])].flatMap((key) => ctx.cache.pods.lister.get(key) ?? []);
}
