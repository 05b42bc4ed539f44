import { keysOf } from "@coxswain/apimachinery/process/narrowing/keys";
import type { PluginChannel } from "../../plugins/plugin-channel.ts";
import { newPluginChannel, PluginError } from "../../plugins/plugin-channel.ts";
import type { MessagesOf, Received, Sent } from "../../runtime/messages.ts";
import { accessModeNumber, csiMessages, csiNodeService, type NodeCapability, nodeCapabilities, usageUnit } from "./csi-schema.ts";

type Texts = Readonly<Record<string, string>>;
type Messages = MessagesOf<typeof csiMessages>;
/** Methods whose request and response are in the table. */
type Method = { [N in keyof Messages]: N extends `${infer M}Request` ? M : never }[keyof Messages];

/** Access type and mode of a volume: mounted file system or block device. */
export interface Capability {
  kind: "mount" | "block";
  /** Kubernetes access mode: `ReadWriteOnce`. */
  accessMode: string;
  fsType: string;
  mountOptions: readonly string[];
  /** The volume's fsGroup, for drivers with the capability VOLUME_MOUNT_GROUP. */
  group?: number | undefined;
}

interface StageRequest {
  handle: string;
  stagingPath: string;
  capability: Capability;
  publishContext: Texts;
  secrets: Texts;
  context: Texts;
}

interface PublishRequest extends StageRequest {
  targetPath: string;
  readOnly: boolean;
}

/** Usage of a volume in bytes or inodes. */
interface UsageOfVolume {
  available: number;
  total: number;
  used: number;
}

/** Result of NodeGetVolumeStats. */
interface StatsOfVolume {
  bytes: UsageOfVolume | undefined;
  inodes: UsageOfVolume | undefined;
  /** The volume condition as reported by the driver; undefined when not reported. */
  condition: { abnormal: boolean; message: string } | undefined;
}

/** Called for every finished call; feeds the metric `csi_operations_seconds`. */
export type OnCsiCall = (driver: string, method: string, code: string, tookMs: number) => void;

const timeoutMs = 120_000;

/**
 * Client of a CSI driver's node service, at the driver's socket. Every call has a deadline of two minutes and throws PluginError.
 * Source: pkg/volume/csi/csi_client.go
 */
export class CsiClient {
  readonly #driver: string;
  readonly #onCall: OnCsiCall | undefined;
  readonly #channel: PluginChannel<Messages>;

  constructor(driver: string, socket: string, onCall?: OnCsiCall) {
    this.#driver = driver;
    this.#onCall = onCall;
    this.#channel = newPluginChannel(socket, csiMessages);
  }

  /** NodeGetInfo. `maxVolumes` is 0 when the driver sets no limit. */
  async info(): Promise<{ nodeId: string; maxVolumes: number; topology: Texts }> {
    const answer = await this.#call("NodeGetInfo", {});
    return { nodeId: answer.nodeId, maxVolumes: answer.maxVolumesPerNode, topology: answer.accessibleTopology?.segments ?? {} };
  }

  /** NodeGetCapabilities; capabilities unknown here are ignored. */
  async capabilities(): Promise<ReadonlySet<NodeCapability>> {
    const answer = await this.#call("NodeGetCapabilities", {});
    const numbers = new Set(answer.capabilities.map(({ rpc }) => rpc?.type));
    return new Set(keysOf(nodeCapabilities).filter((name) => numbers.has(nodeCapabilities[name])));
  }

  /** NodeStageVolume: mounts a volume once for the node. Idempotent, as the other calls. */
  async stage({ handle, stagingPath, capability, publishContext, secrets, context }: StageRequest): Promise<void> {
    await this.#call("NodeStageVolume", {
      volumeId: handle,
      stagingTargetPath: stagingPath,
      volumeCapability: await this.#asMessage(capability),
      publishContext,
      secrets,
      volumeContext: context,
    });
  }

  async unstage(handle: string, stagingPath: string): Promise<void> {
    await this.#call("NodeUnstageVolume", { volumeId: handle, stagingTargetPath: stagingPath });
  }

  /** NodePublishVolume: makes a staged volume available at `targetPath` of one Pod. */
  async publish({
    handle,
    stagingPath,
    targetPath,
    capability,
    readOnly,
    publishContext,
    secrets,
    context,
  }: PublishRequest): Promise<void> {
    await this.#call("NodePublishVolume", {
      volumeId: handle,
      stagingTargetPath: stagingPath,
      targetPath,
      volumeCapability: await this.#asMessage(capability),
      readonly: readOnly,
      publishContext,
      secrets,
      volumeContext: context,
    });
  }

  async unpublish(handle: string, targetPath: string): Promise<void> {
    await this.#call("NodeUnpublishVolume", { volumeId: handle, targetPath });
  }

  /** @throws Error also when the response contains no usage */
  async stats(handle: string, path: string): Promise<StatsOfVolume> {
    const answer = await this.#call("NodeGetVolumeStats", { volumeId: handle, volumePath: path });
    if (answer.usage.length === 0) throw new Error("failed to get usage from response. usage is nil");
    const of = (wanted: number): UsageOfVolume | undefined => answer.usage.find(({ unit }) => unit === wanted);
    return { bytes: of(usageUnit.bytes), inodes: of(usageUnit.inodes), condition: answer.volumeCondition ?? undefined };
  }

  /** NodeExpandVolume: grows the volume's file system to at least `bytes`. */
  async expand({
    handle,
    path,
    stagingPath,
    bytes,
    capability,
  }: {
    handle: string;
    path: string;
    stagingPath: string;
    bytes: number;
    capability: Capability;
  }): Promise<void> {
    await this.#call("NodeExpandVolume", {
      volumeId: handle,
      volumePath: path,
      stagingTargetPath: stagingPath,
      capacityRange: { requiredBytes: bytes },
      volumeCapability: await this.#asMessage(capability),
    });
  }

  close(): void {
    this.#channel.close();
  }

  async #call<N extends Method>(method: N, message: Sent<Messages, `${N}Request`>): Promise<Received<Messages, `${N}Response`>> {
    const started = performance.now();
    const path = `${csiNodeService}/${method}`;
    let code = "OK";
    try {
      const [request, response] = [`${method}Request` as const, `${method}Response` as const];
      return (await this.#channel.call(path, request, response, message, timeoutMs)).answer;
    } catch (err) {
      code = err instanceof PluginError ? err.code : "Unknown";
      throw err;
    } finally {
      this.#onCall?.(this.#driver, path, code, performance.now() - started);
    }
  }

  async #asMessage({ kind, accessMode, fsType, mountOptions, group }: Capability): Promise<Sent<Messages, "VolumeCapability">> {
    const finer = (await this.capabilities()).has("singleNodeMultiWriter");
    return {
      accessMode: { mode: accessModeNumber(accessMode, finer) },
      ...(kind === "block"
        ? { block: {} }
        : { mount: { fsType, mountFlags: mountOptions, ...(group !== undefined && { volumeMountGroup: String(group) }) } }),
    };
  }
}

/** False when the driver may still be executing a failed call, e.g. after a timeout. */
export function isFinal(err: unknown): boolean {
  if (!(err instanceof PluginError)) return false;
  return !["Canceled", "DeadlineExceeded", "Unavailable", "ResourceExhausted", "Aborted"].includes(err.code);
}
