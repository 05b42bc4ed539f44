import { messageOf } from "@coxswain/apimachinery/errors/message";
import { isAlreadyExists, isNotFound } from "@coxswain/apimachinery/errors/predicates";
import type { Lister } from "@coxswain/apimachinery/informers/lister";
import type { Counter } from "@coxswain/apimachinery/metrics/registry";
import type { Node, Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { nodes, volumeAttachments } from "@coxswain/apimachinery/schema/kinds/resources";
import { parseVolumeId, type VolumeId } from "@coxswain/apimachinery/volumes/volume-id";
import type { ControllerContext } from "../../controller-context.ts";
import type { OperationMetrics } from "../../volumes/operation-metrics.ts";
import type { FlexAttacher } from "./flex-attacher.ts";
import { aboutVolume, multiAttachMessage } from "./messages.ts";
import type { NodeReport } from "./node-report.ts";
import type { AttachStep } from "./plan.ts";
import type { Progress, ProgressTable } from "./progress.ts";
import { type AttachableFlexVolume, newAttachment, pluginOf } from "./volume.ts";
import type { Want, WantedVolumes } from "./wanted.ts";

/** Dependencies of the attach and detach steps. */
export interface Room {
  readonly ctx: ControllerContext;
  readonly wanted: WantedVolumes;
  readonly progress: ProgressTable;
  readonly pods: Lister<Pod>;
  readonly report: NodeReport;
  readonly operations: OperationMetrics;
  readonly forcedDetaches: Counter;
  readonly flex: Pick<FlexAttacher, "attach" | "detach" | "owns">;
}

/** Time limit of one attach attempt of a CSI driver. Source: pkg/volume/csi csiTimeout */
const attachLimitMs = 2 * 60_000;
/** Source: pkg/util/goroutinemap/exponentialbackoff */
const firstRetryMs = 500;
const longestRetryMs = 2 * 60_000 + 2000;

/**
 * Executes one planned step.
 * @returns delay in ms until the volume must be reconciled again without a change; Infinity when not needed
 */
export async function carryOut(room: Room, id: VolumeId, step: AttachStep, signal: AbortSignal): Promise<number> {
  const progress = room.progress.of(id, step.node);
  const now = room.ctx.clock.monotonic();
  const tooSoonMs = (progress.retry?.at ?? now) - now;
  switch (step.do) {
    case "attach":
      return tooSoonMs > 0 ? tooSoonMs : attach(room, id, step.node, progress, signal);
    case "await":
      return awaitDriver(room, id, step.node, progress);
    case "attached":
      attached(room, id, step.node, progress);
      return Number.POSITIVE_INFINITY;
    case "failed":
      progress.attachingSince ??= now;
      return tooSoonMs > 0 ? tooSoonMs : attachFailed(room, id, step.node, progress, step.error);
    case "refuse":
      refuse(room, id, step.node, step.others, progress);
      return Number.POSITIVE_INFINITY;
    case "hold":
      progress.unwantedSince ??= now;
      return step.forMs;
    case "detach":
      progress.unwantedSince ??= now;
      return tooSoonMs > 0 ? tooSoonMs : detach(room, id, step, progress, signal);
  }
}

async function attach(room: Room, id: VolumeId, node: string, progress: Progress, signal: AbortSignal): Promise<number> {
  const want = room.wanted.of(id).get(node);
  if (want === undefined) return Number.POSITIVE_INFINITY;
  const { client, clock } = room.ctx;
  progress.attachingSince ??= clock.monotonic();
  if ("flex" in want.volume) return attachFlex(room, want.volume, node, progress);
  try {
    await client.create(volumeAttachments, newAttachment(want.volume, node), { signal });
  } catch (err) {
    if (!isAlreadyExists(err)) return attachFailed(room, id, node, progress, `attacher.Attach failed: ${messageOf(err)}`);
  }
  return attachLimitMs;
}

/** Attaches through a flex driver. Success and failure both change the FlexAttacher's state, which enqueues the volume. */
async function attachFlex(room: Room, volume: AttachableFlexVolume, node: string, progress: Progress): Promise<number> {
  try {
    await room.flex.attach(volume.flex, node);
    return Number.POSITIVE_INFINITY;
  } catch (err) {
    return attachFailed(room, volume.id, node, progress, messageOf(err));
  }
}

function awaitDriver(room: Room, id: VolumeId, node: string, progress: Progress): number {
  const now = room.ctx.clock.monotonic();
  progress.attachingSince ??= now;
  const leftMs = progress.attachingSince + attachLimitMs - now;
  if (leftMs > 0) return leftMs;
  const { driver, handle } = parseVolumeId(id) ?? { driver: "", handle: "" };
  const error = `timed out waiting for external-attacher of ${driver} CSI driver to attach volume ${handle}`;
  attachFailed(room, id, node, progress, error);
  progress.attachingSince = now;
  return attachLimitMs;
}

function attached(room: Room, id: VolumeId, node: string, progress: Progress): void {
  const want = room.wanted.of(id).get(node);
  if (want !== undefined && progress.attachingSince !== undefined) {
    observe(room, id, "volume_attach", "success", progress.attachingSince);
    const message = aboutVolume("AttachVolume.Attach succeeded", want.volume.label, "");
    for (const pod of podsOf(room, want)) room.ctx.recorder.event(pod, "Normal", "SuccessfulAttachVolume", message);
  }
  room.progress.forget(id, node);
}

function attachFailed(room: Room, id: VolumeId, node: string, progress: Progress, error: string): number {
  const want = room.wanted.of(id).get(node);
  observe(room, id, "volume_attach", "fail-unknown", progress.attachingSince);
  if (want !== undefined) {
    const message = aboutVolume("AttachVolume.Attach failed", want.volume.label, `: ${error}`);
    for (const pod of podsOf(room, want)) room.ctx.recorder.event(pod, "Warning", "FailedAttachVolume", message);
  }
  return retryLater(room, progress);
}

function refuse(room: Room, id: VolumeId, node: string, others: readonly string[], progress: Progress): void {
  const wants = room.wanted.of(id);
  const want = wants.get(node);
  if (want === undefined || progress.refused === true) return;
  progress.refused = true;
  const users = others.flatMap((other) => podsOf(room, wants.get(other)));
  for (const pod of podsOf(room, want)) {
    const message = multiAttachMessage(pod, users, want.volume.label);
    room.ctx.recorder.event(pod, "Warning", "FailedAttachVolume", message);
  }
}

/** Removes the volume from the node's `status.volumesAttached`, checks that the node does not use it, and then detaches it. */
async function detach(
  room: Room,
  id: VolumeId,
  { node, name, forced }: AttachStep & { do: "detach" },
  progress: Progress,
  signal: AbortSignal,
): Promise<number> {
  const { client, clock, log } = room.ctx;
  progress.detachingSince ??= clock.monotonic();
  progress.leaving = true;
  try {
    await room.report.write(node, signal);
    if (!forced && (await isInUse(room, id, node, signal)))
      throw new Error("volume is still in use by node, according to Node status");
    if (forced) room.forcedDetaches.inc();
    if (room.flex.owns(id)) {
      await room.flex.detach(id, node);
      detached(room, id, node);
    } else await client.delete(volumeAttachments, { name }, { signal });
  } catch (err) {
    if (isNotFound(err)) return Number.POSITIVE_INFINITY;
    if (signal.aborted) throw err;
    log.error("DetachVolume.Detach failed", err, { volume: id, node });
    observe(room, id, "volume_detach", "fail-unknown", progress.detachingSince);
    progress.leaving = false;
    await room.report.write(node, signal);
    return retryLater(room, progress);
  }
  return Number.POSITIVE_INFINITY;
}

/** Reads the Node from the API server instead of the cache: detaching a volume that is being written to corrupts it. */
async function isInUse({ ctx }: Room, id: VolumeId, name: string, signal: AbortSignal): Promise<boolean> {
  try {
    const node = await ctx.client.get<Node>(nodes, { name }, { signal });
    return node.status?.volumesInUse?.includes(id) ?? false;
  } catch (err) {
    if (isNotFound(err)) return false;
    throw err;
  }
}

/** Records that the attachment no longer exists. */
export function detached(room: Room, id: VolumeId, node: string): void {
  const since = room.progress.peek(id, node)?.detachingSince;
  if (since !== undefined) observe(room, id, "volume_detach", "success", since);
  room.progress.forget(id, node);
}

function retryLater({ ctx }: Room, progress: Progress): number {
  const waitMs = Math.min((progress.retry?.waitMs ?? firstRetryMs / 2) * 2, longestRetryMs);
  progress.retry = { at: ctx.clock.monotonic() + waitMs, waitMs };
  return waitMs;
}

function observe({ ctx, operations }: Room, id: VolumeId, operation: string, status: string, since: number | undefined): void {
  const now = ctx.clock.monotonic();
  operations.duration.labels(pluginOf(id), operation, status, "false").observe((now - (since ?? now)) / 1000);
}

function podsOf({ pods }: Room, want: Want | undefined): Pod[] {
  return [...(want?.pods ?? [])].flatMap((key) => pods.get(key) ?? []);
}
