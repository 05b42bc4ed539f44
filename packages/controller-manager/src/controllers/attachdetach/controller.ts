import { type Controller, done, newController, type Result } from "@coxswain/apimachinery/controller/controller";
import { guarded } from "@coxswain/apimachinery/controller/guarded";
import { needsSynced } from "@coxswain/apimachinery/controller/sources";
import { newNewest } from "@coxswain/apimachinery/informers/newest";
import type {
  AttachedVolume,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
} from "@coxswain/apimachinery/schema/kinds/core/v1";
import {
  csiDrivers,
  csiNodes,
  nodes,
  persistentVolumeClaims,
  persistentVolumes,
  pods,
  volumeAttachments,
} from "@coxswain/apimachinery/schema/kinds/resources";
import type { CSIDriver, CSINode, VolumeAttachment } from "@coxswain/apimachinery/schema/kinds/storage/v1";
import { parseVolumeId, type VolumeId } from "@coxswain/apimachinery/volumes/volume-id";
import type { ControllerContext, Runnable } from "../../controller-context.ts";
import { operationMetrics } from "../../volumes/operation-metrics.ts";
import { newAttachments } from "./attachments.ts";
import { carryOut, detached, type Room } from "./carry-out.ts";
import { newFlexAttacher } from "./flex-attacher.ts";
import { isManaged } from "./managed-node.ts";
import { attachMetrics } from "./metrics.ts";
import { newNodeReport } from "./node-report.ts";
import { planVolume } from "./plan.ts";
import { newProgressTable } from "./progress.ts";
import { resolve, type VolumeSources } from "./resolve.ts";
import { type Informers, wakeOnChanges } from "./wake.ts";
import { newWantedVolumes } from "./wanted.ts";

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
export function newAttachDetachController(ctx: ControllerContext): Runnable {
  const informers: Informers = {
    pods: ctx.informers.for<Pod>(pods),
    nodes: ctx.informers.for<Node>(nodes),
    claims: ctx.informers.for<PersistentVolumeClaim>(persistentVolumeClaims),
    volumes: ctx.informers.for<PersistentVolume>(persistentVolumes),
    drivers: ctx.informers.for<CSIDriver>(csiDrivers),
    csiNodes: ctx.informers.for<CSINode>(csiNodes),
    attachments: ctx.informers.for<VolumeAttachment>(volumeAttachments),
  };
  const gates = ctx.featureGates;
  const attachments = newAttachments({ ...informers, gates });
  const flex = newFlexAttacher({
    pluginDir: ctx.config.volumes.flexPluginDir,
    nodes: informers.nodes.lister,
    log: ctx.log,
    onChange(id, node) {
      enqueueVolume(id);
      nodeLoop.enqueue(node);
    },
    onDriver: () => wake.pods(),
  });
  const sources: VolumeSources = {
    claims: informers.claims.lister,
    volumes: informers.volumes.lister,
    drivers: informers.drivers.lister,
    nodes: informers.csiNodes.lister,
    gates,
    flex,
  };
  const wanted = newWantedVolumes((pod, volume) => resolve(pod, volume, sources));
  const progress = newProgressTable();
  const usable = (node: string): AttachedVolume[] => {
    const csi = attachments.onNode(node).map((name) => ({ name, devicePath: "" }));
    return [...csi, ...flex.onNode(node)].filter(({ name }) => progress.peek(name, node)?.leaving !== true);
  };
  const report = newNodeReport({
    client: ctx.client,
    known: newNewest(informers.nodes),
    usable,
    isOurs: (name) => parseVolumeId(name) !== undefined || flex.owns(name),
  });
  const room: Room = {
    ctx,
    wanted,
    progress,
    report,
    pods: informers.pods.lister,
    operations: operationMetrics(ctx.registry),
    flex,
    forcedDetaches: attachMetrics(ctx.registry, wanted, () => [
      ...informers.attachments.lister.list().flatMap((attachment) => attachments.idOf(attachment) ?? []),
      ...flex.attached(),
    ]),
  };
  /**
   * Nodes from which this controller may detach a volume: those with an attachment at startup, and those where a Pod
   * has needed it since.
   */
  const ours = new Map<VolumeId, Set<string>>();
  const oursOf = (id: VolumeId): Set<string> => ours.getOrInsertComputed(id, () => new Set());

  const reconcile = async (id: VolumeId, signal: AbortSignal): Promise<Result> => {
    const wants = wanted.of(id);
    const isFlex = flex.owns(id);
    const there = isFlex ? flex.of(id) : attachments.of(id, wants.keys());
    const concerned = new Set([...wants.keys(), ...there.map(({ node }) => node)]);
    const mine = oursOf(id);
    for (const node of wants.keys()) mine.add(node);
    for (const node of mine) if (!concerned.has(node)) mine.delete(node);
    if (mine.size === 0) ours.delete(id);
    progress.keep(id, concerned);
    const steps = planVolume({
      wanted: [...wants.keys()],
      attachments: isFlex ? there : there.filter(({ node }) => mine.has(node)),
      exclusive: [...wants.values()].some(({ volume }) => volume.exclusive),
      unwantedSince: (node) => progress.peek(id, node)?.unwantedSince,
      now: ctx.clock.monotonic(),
    });
    let againMs = Number.POSITIVE_INFINITY;
    for (const step of steps) againMs = Math.min(againMs, await carryOut(room, id, step, signal));
    return Number.isFinite(againMs) ? { requeueAfterMs: againMs } : done;
  };

  const common = {
    sources: Object.values(informers).map((informer) => needsSynced<never>(informer as never)),
    log: ctx.log,
    clock: ctx.clock,
    metrics: ctx.queueMetrics,
  };
  const volumeLoop: Controller = newController({ ...common, name: "attachdetach_volumes", workers: 10, reconcile });
  // Separate queue: a hanging flex driver blocks only flex volumes.
  const flexLoop: Controller = newController({ ...common, name: "attachdetach_flex", workers: 50, reconcile });
  const enqueueVolume = (id: VolumeId): void => (flex.owns(id) ? flexLoop : volumeLoop).enqueue(id);
  const nodeLoop: Controller = newController({
    ...common,
    name: "attachdetach_nodes",
    workers: 5,
    async reconcile(node, signal) {
      const known = informers.nodes.lister.get(node);
      if (known !== undefined && isManaged(known)) await report.write(node, signal);
      return done;
    },
  });

  const wake = wakeOnChanges({
    informers,
    wanted,
    attachments,
    gates,
    volume: enqueueVolume,
    node: nodeLoop.enqueue,
    gone: (id, node) => detached(room, id, node),
  });

  const lookAgain = (): void => {
    wake.all();
    for (const look of [flex.scan(), flex.verify(wanted)])
      look.catch((err: unknown) => ctx.log.error("flex volumes cannot be looked at", err));
  };

  return {
    async run(signal) {
      try {
        await Promise.all(Object.values(informers).map((informer) => informer.waitForSync(signal)));
      } catch (err) {
        if (signal.aborted) return;
        throw err;
      }
      for (const attachment of informers.attachments.lister.list()) {
        const id = attachments.idOf(attachment);
        if (id !== undefined) oursOf(id).add(attachment.spec.nodeName);
      }
      lookAgain();
      const { sync, syncPeriodMs } = ctx.config.volumes.attachDetach;
      const resync = sync
        ? ctx.clock.every(syncPeriodMs, guarded(ctx.log, "volumes cannot be looked at again", lookAgain))
        : undefined;
      try {
        await Promise.all([volumeLoop.run(signal), flexLoop.run(signal), nodeLoop.run(signal)]);
      } finally {
        resync?.cancel();
      }
    },
  };
}
