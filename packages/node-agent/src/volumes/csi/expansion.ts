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

interface ExpansionOptions {
  client: Client;
  recorder: EventRecorder;
  reportPodEvent: ContainerEvent;
  nodeName: string;
  /** Claims have a `resizeStatus` (RecoverVolumeExpansionFailure). */
  recovers: boolean;
  log: Logger;
}

/**
 * Returns an `Expand` that reports each outcome as an event of the Pod and of its claim.
 * Source: pkg/volume/util/operationexecutor/operation_generator.go nodeExpandVolume, node_expander.go,
 * pkg/volume/util/resize_util.go, pkg/volume/csi/expander.go
 */
export function newExpansion(options: ExpansionOptions): Expand {
  const expansion = new Expansion(options);
  return (request) => expansion.expand(request);
}

class Expansion {
  readonly #options: ExpansionOptions;

  constructor(options: ExpansionOptions) {
    this.#options = options;
  }

  async expand(request: ExpansionRequest): Promise<void> {
    const { pod, claim: seen, volume, source, published } = request;
    const { client, recovers, nodeName } = this.#options;
    const capacity = volume.spec.capacity?.["storage"];
    if (capacity === undefined || !isSmaller(seen, capacity)) return;
    const claim = await client.get<PersistentVolumeClaim>(persistentVolumeClaims, {
      namespace: seen.metadata.namespace,
      name: seen.metadata.name ?? "",
    });
    if (!isSmaller(claim, capacity)) return;
    // Resizers without RecoverVolumeExpansionFailure set neither field; the node then expands without tracking.
    const { resizeStatus, allocatedResources } = claim.status ?? {};
    const tracked = recovers && (resizeStatus !== undefined || allocatedResources !== undefined);
    const label = `for volume ${JSON.stringify(source.name)}`;
    if (source.readOnly) {
      const message = `MountVolume.NodeExpandVolume failed ${label} requested read-only file system`;
      if (!published.again) this.#notify(pod, claim, "Warning", "FileSystemResizeFailed", message);
      return;
    }
    if (tracked && resizeStatus !== undefined && !nodesTurn.includes(resizeStatus)) return;
    try {
      const driver = request.driver();
      if (!(await driver.capabilities()).has("expand")) return;
      if (tracked) await this.#mark(claim, "NodeExpansionInProgress", claim.metadata.resourceVersion);
      await driver.expand(expandCall(request, String(capacity)));
    } catch (err) {
      await this.#failed(request, claim, tracked, err);
      return;
    }
    const message = `MountVolume.NodeExpandVolume succeeded ${label} ${nodeName}`;
    this.#notify(pod, claim, "Normal", "FileSystemResizeSuccessful", message);
    await this.#markFinished(claim, String(capacity)).catch((err: Error) => {
      throw new Error(`MountVolume.NodeExpandVolume update PVC status failed : ${err.message}`);
    });
  }

  async #failed(
    { pod, source, published }: ExpansionRequest,
    claim: PersistentVolumeClaim,
    tracked: boolean,
    err: unknown,
  ): Promise<void> {
    const { log, reportPodEvent } = this.#options;
    if (tracked && isFinal(err)) {
      await this.#mark(claim, "NodeExpansionFailed").catch((failed: Error) =>
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
    const message = `NodeExpandVolume.NodeExpandVolume failed for volume ${JSON.stringify(source.name)} : ${text}`;
    reportPodEvent(pod, undefined, "Warning", "VolumeResizeFailed", message);
  }

  #notify(pod: NodePod, claim: PersistentVolumeClaim, type: "Normal" | "Warning", reason: string, message: string): void {
    this.#options.reportPodEvent(pod, undefined, type, reason, message);
    const { namespace = "", name = "", uid = "" } = claim.metadata;
    const ref = { apiVersion: "v1", kind: "PersistentVolumeClaim", namespace, name, uid };
    this.#options.recorder.event(ref, type, reason, message);
  }

  async #markFinished(claim: PersistentVolumeClaim, storage: string): Promise<void> {
    const conditions = (claim.status?.conditions ?? []).filter(({ type }) => !resizeConditions.includes(type));
    const finished = this.#options.recovers && { resizeStatus: "" };
    await this.#patch(claim, { status: { capacity: { storage }, conditions, ...finished } });
  }

  /** @param resourceVersion when given, the update fails if the claim was modified since */
  async #mark(claim: PersistentVolumeClaim, resizeStatus: string, resourceVersion?: string): Promise<void> {
    const metadata = resourceVersion !== undefined && { metadata: { resourceVersion } };
    await this.#patch(claim, { ...metadata, status: { resizeStatus } });
  }

  async #patch({ metadata: { namespace, name = "" } }: PersistentVolumeClaim, body: object): Promise<void> {
    const { client } = this.#options;
    await client.patch(persistentVolumeClaims, { namespace, name, subresource: "status" }, { type: "merge", body });
  }
}

function expandCall({ source, published }: ExpansionRequest, capacity: string): Parameters<CsiClient["expand"]>[0] {
  const { kind, fsType, mountOptions, accessModes } = source;
  return {
    handle: source.handle,
    path: published.targetPath,
    stagingPath: published.stagingPath,
    bytes: Quantity.parse(capacity).value(),
    capability: { kind, fsType, mountOptions, accessMode: accessModes[0] ?? "ReadWriteOnce" },
  };
}

/** False when the claim's status has no capacity yet. */
function isSmaller(claim: PersistentVolumeClaim, capacity: unknown): boolean {
  const has = claim.status?.capacity?.["storage"];
  return has !== undefined && Quantity.parse(String(has)).cmp(Quantity.parse(String(capacity))) < 0;
}
