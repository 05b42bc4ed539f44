import { type Controller, done, type Result } from "@coxswain/apimachinery/controller/controller";
import { guarded } from "@coxswain/apimachinery/controller/guarded";
import { needsSynced } from "@coxswain/apimachinery/controller/sources";
import { type ObjectRef, objectRef } from "@coxswain/apimachinery/decisions/decision";
import type { ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import { nodes, persistentVolumes } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { entriesOf } from "@coxswain/apimachinery/process/narrowing/keys";
import type { VolumeId } from "@coxswain/apimachinery/volumes/volume-id";
import type { ControllerContext, Runnable } from "../../controller-context.ts";
import { defineController, runTogether } from "../../define-controller.ts";
import { type AttachDetachContext, newAttachDetachContext } from "./context.ts";
import { EventHandlers } from "./event-handlers.ts";
import { isManaged } from "./managed-node.ts";
import { planVolume } from "./plan.ts";
import { applyStep } from "./writes.ts";

/**
 * attachdetach-controller: attaches volumes to the nodes whose Pods need them, detaches them when the node has
 * unmounted them, and maintains `status.volumesAttached` of the nodes. CSI drivers are driven by one VolumeAttachment
 * per volume and node; attach-capable flex drivers are executed by this process. Only nodes with the
 * controller-managed annotation are handled.
 *
 * Upstream keeps tables of desired and actual state and compares them ten times a second. Here the VolumeAttachments
 * are the actual state (except for flex volumes), and a volume is reconciled when a related object changes.
 * Source: pkg/controller/volume/attachdetach, pkg/volume/csi/csi_attacher.go
 */
export function newAttachDetachController(base: ControllerContext): Runnable {
  const ctx: AttachDetachContext = newAttachDetachContext(base, {
    enqueueVolume: (id) => (ctx.flex.owns(id) ? flexQueue : volumeQueue).enqueue(id),
    enqueueNode: (name) => nodeQueue.enqueue(name),
    onFlexDriver: () => handlers.resolveAllPods(),
  });
  const sources = entriesOf(ctx.cache).map(([, informer]) => needsSynced(informer));
  const volumeQueue: Controller = defineController(ctx, {
    name: "attachdetach_volumes",
    objectOf: (id) => volumeOf(ctx, id),
    sources,
    reconcile: reconcileVolume,
    workers: 10,
  });
  // Separate queue: a hanging flex driver blocks only flex volumes.
  const flexQueue: Controller = defineController(ctx, {
    name: "attachdetach_flex",
    sources,
    reconcile: reconcileVolume,
    workers: 50,
  });
  const nodeQueue: Controller = defineController(ctx, {
    name: "attachdetach_nodes",
    resource: nodes,
    sources,
    reconcile: reconcileNode,
    workers: 5,
  });
  const handlers = new EventHandlers(ctx);
  handlers.register();

  const enqueueAll = (): void => {
    handlers.enqueueAll();
    for (const check of [ctx.flex.scan(), ctx.flex.verify(ctx.desired)])
      check.catch((err: unknown) => ctx.log.error("cannot check the flex volumes", err));
  };
  return {
    async run(signal) {
      try {
        await Promise.all(Object.values(ctx.cache).map((informer) => informer.waitForSync(signal)));
      } catch (err) {
        if (signal.aborted) return;
        throw err;
      }
      for (const attachment of ctx.cache.attachments.lister.list()) {
        const id = ctx.attachments.idOf(attachment);
        if (id !== undefined) ctx.detachable.add(id, attachment.spec.nodeName);
      }
      enqueueAll();
      const { sync, syncPeriodMs } = ctx.config.volumes.attachDetach;
      const resync = sync ? ctx.clock.every(syncPeriodMs, guarded(ctx.log, "resync of volumes failed", enqueueAll)) : undefined;
      try {
        await runTogether(volumeQueue, flexQueue, nodeQueue).run(signal);
      } finally {
        resync?.cancel();
      }
    },
  };
}

function volumeOf({ cache }: AttachDetachContext, id: VolumeId): ObjectRef | undefined {
  const [volume] = cache.volumes.lister.byIndex("volume-id", id);
  return volume && objectRef(persistentVolumes, volume);
}

/** Attaches and detaches one volume on all nodes. The key is the volume's id. */
async function reconcileVolume(ctx: AttachDetachContext, id: ObjectKey, signal: AbortSignal): Promise<Result> {
  const { attachments, desired, progress, flex, clock } = ctx;
  const desiredByNode = desired.of(id);
  const isFlex = flex.owns(id);
  const actual = isFlex ? flex.of(id) : attachments.of(id, desiredByNode.keys());
  const involved = new Set([...desiredByNode.keys(), ...actual.map(({ node }) => node)]);
  const detachable = ctx.detachable.update(id, desiredByNode.keys(), involved);
  progress.keep(id, involved);
  const steps = planVolume({
    desired: [...desiredByNode.keys()],
    attachments: isFlex ? actual : actual.filter(({ node }) => detachable.has(node)),
    exclusive: [...desiredByNode.values()].some(({ volume }) => volume.exclusive),
    unusedSince: (node) => progress.peek(id, node)?.unusedSince,
    now: clock.monotonic(),
  });
  let requeueAfterMs = Number.POSITIVE_INFINITY;
  for (const step of steps) requeueAfterMs = Math.min(requeueAfterMs, await applyStep(ctx, id, step, signal));
  return Number.isFinite(requeueAfterMs) ? { requeueAfterMs } : done;
}

/** Updates `status.volumesAttached` of one node. */
async function reconcileNode(ctx: AttachDetachContext, name: ObjectKey, signal: AbortSignal): Promise<Result> {
  const node = ctx.cache.nodes.lister.get(name);
  if (node !== undefined && isManaged(node)) await ctx.nodeStatus.write(name, signal);
  return done;
}
