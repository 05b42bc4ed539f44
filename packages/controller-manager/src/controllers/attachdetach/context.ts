import { newNewest } from "@coxswain/apimachinery/informers/newest";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import type { Node, PersistentVolume, PersistentVolumeClaim, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import {
  csiDrivers,
  csiNodes,
  nodes,
  persistentVolumeClaims,
  persistentVolumes,
  pods,
  volumeAttachments,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { CSIDriver, CSINode, VolumeAttachment } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import type { Counter } from "@coxswain/apimachinery/process/metrics/registry";
import { parseVolumeId, type VolumeId } from "@coxswain/apimachinery/volumes/volume-id";
import type { ControllerContext } from "../../controller-context.ts";
import { type OperationMetrics, operationMetrics } from "../../volumes/operation-metrics.ts";
import { type Attachments, newAttachments } from "./attachments.ts";
import { type DesiredVolumes, newDesiredVolumes } from "./desired-volumes.ts";
import { DetachableNodes } from "./detachable-nodes.ts";
import { FlexAttacher } from "./flex-attacher.ts";
import { attachMetrics } from "./metrics.ts";
import { type NodeStatusUpdater, newNodeStatusUpdater } from "./node-status.ts";
import { newProgressTable, type ProgressTable } from "./progress.ts";
import { resolve, type VolumeSources } from "./resolve.ts";

interface AttachDetachInformers {
  readonly pods: SharedInformer<Pod>;
  readonly nodes: SharedInformer<Node>;
  readonly claims: SharedInformer<PersistentVolumeClaim>;
  readonly volumes: SharedInformer<PersistentVolume>;
  readonly drivers: SharedInformer<CSIDriver>;
  readonly csiNodes: SharedInformer<CSINode>;
  readonly attachments: SharedInformer<VolumeAttachment>;
}

/** Dependencies and state shared by all reconciliations of volumes and nodes. */
export interface AttachDetachContext extends ControllerContext {
  readonly cache: AttachDetachInformers;
  readonly attachments: Attachments;
  readonly desired: DesiredVolumes;
  readonly progress: ProgressTable;
  readonly flex: FlexAttacher;
  readonly nodeStatus: NodeStatusUpdater;
  readonly detachable: DetachableNodes;
  readonly operations: OperationMetrics;
  readonly forcedDetaches: Counter;
  enqueueVolume(id: VolumeId): void;
  enqueueNode(name: string): void;
}

/** The queues, and the callback for a flex driver that was found: volumes that were not attachable may be attachable now. */
interface AttachDetachQueues extends Pick<AttachDetachContext, "enqueueVolume" | "enqueueNode"> {
  onFlexDriver(): void;
}

/** Reads the FlexVolume drivers in the configured folder; their changes are reported to the queues. */
export function newAttachDetachContext(base: ControllerContext, queues: AttachDetachQueues): AttachDetachContext {
  const { client, log, registry, featureGates: gates } = base;
  const cache = informersOf(base);
  const detachable = new DetachableNodes();
  const attachments = newAttachments({ ...cache, gates, detachable });
  const flex = new FlexAttacher({
    pluginDir: base.config.volumes.flexPluginDir,
    nodes: cache.nodes.lister,
    log,
    onChange(id, node) {
      queues.enqueueVolume(id);
      queues.enqueueNode(node);
    },
    onDriver: () => queues.onFlexDriver(),
  });
  const sources: VolumeSources = {
    claims: cache.claims.lister,
    volumes: cache.volumes.lister,
    drivers: cache.drivers.lister,
    nodes: cache.csiNodes.lister,
    gates,
    flex,
  };
  const desired = newDesiredVolumes((pod, volume) => resolve(pod, volume, sources));
  const progress = newProgressTable();
  const nodeStatus = newNodeStatusUpdater({
    client,
    known: newNewest(cache.nodes),
    usable: (node) => {
      const csi = attachments.onNode(node).map((name) => ({ name, devicePath: "" }));
      return [...csi, ...flex.onNode(node)].filter(({ name }) => progress.peek(name, node)?.leaving !== true);
    },
    isManaged: (name) => parseVolumeId(name) !== undefined || flex.owns(name),
  });
  return {
    ...base,
    ...queues,
    cache,
    attachments,
    desired,
    progress,
    flex,
    nodeStatus,
    detachable,
    operations: operationMetrics(registry),
    forcedDetaches: attachMetrics(registry, desired, () => [
      ...cache.attachments.lister.list().flatMap((attachment) => attachments.idOf(attachment) ?? []),
      ...flex.attached(),
    ]),
  };
}

function informersOf({ informers }: ControllerContext): AttachDetachInformers {
  return {
    pods: informers.for<Pod>(pods),
    nodes: informers.for<Node>(nodes),
    claims: informers.for<PersistentVolumeClaim>(persistentVolumeClaims),
    volumes: informers.for<PersistentVolume>(persistentVolumes),
    drivers: informers.for<CSIDriver>(csiDrivers),
    csiNodes: informers.for<CSINode>(csiNodes),
    attachments: informers.for<VolumeAttachment>(volumeAttachments),
  };
}
