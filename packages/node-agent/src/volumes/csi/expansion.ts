import type { Client } from "@coxswain/apimachinery/client/client";
import type { EventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { Quantity } from "@coxswain/apimachinery/objects/meta/quantity";
import type { PersistentVolume, PersistentVolumeClaim } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { persistentVolumeClaims } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { PluginError } from "../../plugins/plugin-channel.ts";
import type { NodePod } from "../../pod/pod.ts";
import type { ContainerEvent } from "../../runtime/containers.ts";
import { type CsiClient, isFinal } from "./csi-client.ts";
import type { CsiSource } from "./csi-source.ts";
import type { PublishedVolume } from "./csi-volumes.ts";

/** A published volume that may have to be expanded. */
interface ExpansionRequest {
  pod: NodePod;
  claim: PersistentVolumeClaim;
  volume: PersistentVolume;
  source: CsiSource;
  published: PublishedVolume;
  /** @throws Error while the driver is not registered; called only when the volume has to grow */
  driver: () => CsiClient;
}

/**
 * Expands the file system of an expanded volume and updates the claim's status.
 * @throws Error on failure while the volume is being mounted; afterwards failures are reported as events and retried
 */
export type Expand = (request: ExpansionRequest) => Promise<void>;

const resizeConditions = ["Resizing", "FileSystemResizePending"];
/** States of the claim in which the node expands; failed expansions are left to the resizer. */
const nodesTurn = ["NodeExpansionPending", "NodeExpansionInProgress"];

/**
 * Returns an `Expand` that reports each outcome as an event of the Pod and of its claim.
 * Source: pkg/volume/util/operationexecutor/operation_generator.go nodeExpandVolume, node_expander.go,
 * pkg/volume/util/resize_util.go, pkg/volume/csi/expander.go
 */
export function newExpansion(options: {
  client: Client;
  recorder: EventRecorder;
  reportPodEvent: ContainerEvent;
  nodeName: string;
  /** Claims have a `resizeStatus` (RecoverVolumeExpansionFailure). */
  recovers: boolean;
  log: Logger;
}): Expand {
  const { client, nodeName, log } = options;

  function notify(pod: NodePod, claim: PersistentVolumeClaim, type: "Normal" | "Warning", reason: string, message: string): void {
    options.reportPodEvent(pod, undefined, type, reason, message);
    const { namespace = "", name = "", uid = "" } = claim.metadata;
    const ref = { apiVersion: "v1", kind: "PersistentVolumeClaim", namespace, name, uid };
    options.recorder.event(ref, type, reason, message);
  }

  async function markFinished(claim: PersistentVolumeClaim, storage: string): Promise<void> {
    const { namespace, name = "" } = claim.metadata;
    const conditions = (claim.status?.conditions ?? []).filter(({ type }) => !resizeConditions.includes(type));
    const finished = options.recovers && { resizeStatus: "" };
    const body = { status: { capacity: { ...claim.status?.capacity, storage }, conditions, ...finished } };
    await client.patch(persistentVolumeClaims, { namespace, name, subresource: "status" }, { type: "merge", body });
  }

  /** @param resourceVersion when given, the update fails if the claim was modified since */
  async function mark({ metadata }: PersistentVolumeClaim, resizeStatus: string, resourceVersion?: string): Promise<void> {
    const { namespace, name = "" } = metadata;
    const body = { ...(resourceVersion !== undefined && { metadata: { resourceVersion } }), status: { resizeStatus } };
    await client.patch(persistentVolumeClaims, { namespace, name, subresource: "status" }, { type: "merge", body });
  }

  return async ({ pod, claim: seen, volume, source, published, driver: findDriver }) => {
    const capacity = volume.spec.capacity?.["storage"];
    if (capacity === undefined || !isSmaller(seen, capacity)) return;
    const claim = await client.get<PersistentVolumeClaim>(persistentVolumeClaims, {
      namespace: seen.metadata.namespace,
      name: seen.metadata.name ?? "",
    });
    if (!isSmaller(claim, capacity)) return;
    // Resizers without RecoverVolumeExpansionFailure set neither field; the node then expands without tracking.
    const { resizeStatus, allocatedResources } = claim.status ?? {};
    const tracked = options.recovers && (resizeStatus !== undefined || allocatedResources !== undefined);
    const label = `for volume ${JSON.stringify(source.name)}`;
    if (source.readOnly) {
      const message = `MountVolume.NodeExpandVolume failed ${label} requested read-only file system`;
      if (!published.again) notify(pod, claim, "Warning", "FileSystemResizeFailed", message);
      return;
    }
    if (tracked && resizeStatus !== undefined && !nodesTurn.includes(resizeStatus)) return;
    try {
      const driver = findDriver();
      if (!(await driver.capabilities()).has("expand")) return;
      if (tracked) await mark(claim, "NodeExpansionInProgress", claim.metadata.resourceVersion);
      await driver.expand({
        handle: source.handle,
        path: published.targetPath,
        stagingPath: published.stagingPath,
        bytes: Quantity.parse(String(capacity)).value(),
        capability: {
          kind: source.kind,
          fsType: source.fsType,
          mountOptions: source.mountOptions,
          accessMode: source.accessModes[0] ?? "ReadWriteOnce",
        },
      });
    } catch (err) {
      if (tracked && isFinal(err)) {
        await mark(claim, "NodeExpansionFailed").catch((failed: Error) =>
          log.error("MountVolume.NodeExpandVolume failed to mark node expansion as failed", failed, { volume: source.name }),
        );
      }
      const text = `Expander.NodeExpand failed to expand the volume : ${messageOf(err)}`;
      // The driver refuses to expand a volume in use (FailedPrecondition); the volume itself stays usable.
      if (err instanceof PluginError && err.code === "FailedPrecondition") {
        log.error("MountVolume.NodeExpandVolume failed", err, { volume: source.name });
        return;
      }
      if (!published.again) throw new Error(text);
      const message = `NodeExpandVolume.NodeExpandVolume failed ${label} : ${text}`;
      options.reportPodEvent(pod, undefined, "Warning", "VolumeResizeFailed", message);
      return;
    }
    const message = `MountVolume.NodeExpandVolume succeeded ${label} ${nodeName}`;
    notify(pod, claim, "Normal", "FileSystemResizeSuccessful", message);
    await markFinished(claim, String(capacity)).catch((err: Error) => {
      throw new Error(`MountVolume.NodeExpandVolume update PVC status failed : ${err.message}`);
    });
  };
}

/** False when the claim's status has no capacity yet. */
function isSmaller(claim: PersistentVolumeClaim, capacity: unknown): boolean {
  const has = claim.status?.capacity?.["storage"];
  return has !== undefined && Quantity.parse(String(has)).cmp(Quantity.parse(String(capacity))) < 0;
}
