import { createHash } from "node:crypto";
import type { PersistentVolume, SecretReference, Volume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { CSIDriver, VolumeAttachmentSource } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import { type VolumeId, volumeId } from "@coxswain/apimachinery/volumes/volume-id";
import type { NodePod } from "../../pod/pod.ts";

/** A CSI volume of a Pod, from a PersistentVolume or an inline volume. */
export interface CsiSource {
  /** Name of the persistent volume, or of the Pod's volume; part of the directory paths. */
  name: string;
  mode: "Persistent" | "Ephemeral";
  kind: "mount" | "block";
  driver: string;
  handle: string;
  readOnly: boolean;
  fsType: string;
  attributes: Readonly<Record<string, string>>;
  accessModes: readonly string[];
  mountOptions: readonly string[];
  stageSecret: SecretReference | undefined;
  publishSecret: SecretReference | undefined;
  /** The volume source in the VolumeAttachment. */
  attach: VolumeAttachmentSource;
}

/** @returns undefined when the volume is not a CSI volume */
export function persistentSource(volume: PersistentVolume, readOnly: boolean): CsiSource | undefined {
  const { csi, accessModes = [], mountOptions = [], volumeMode } = volume.spec;
  if (csi === undefined) return undefined;
  return {
    name: (volume.metadata.name ?? "").replaceAll("/", "~"),
    mode: "Persistent",
    kind: volumeMode === "Block" ? "block" : "mount",
    driver: csi.driver,
    handle: csi.volumeHandle,
    readOnly,
    fsType: csi.fsType ?? "",
    attributes: csi.volumeAttributes ?? {},
    accessModes,
    mountOptions,
    stageSecret: csi.nodeStageSecretRef,
    publishSecret: csi.nodePublishSecretRef,
    attach: { persistentVolumeName: volume.metadata.name ?? "" },
  };
}

/** An inline CSI volume, which has the lifetime of its Pod. @returns undefined for other volumes */
export function ephemeralSource(pod: NodePod, volume: Volume): CsiSource | undefined {
  const { csi } = volume;
  if (csi === undefined) return undefined;
  const { uid, namespace } = pod.metadata;
  return {
    name: volume.name,
    mode: "Ephemeral",
    kind: "mount",
    driver: csi.driver,
    handle: `csi-${createHash("sha256").update(`${uid}${volume.name}`).digest("hex")}`,
    readOnly: csi.readOnly ?? false,
    fsType: csi.fsType ?? "",
    attributes: csi.volumeAttributes ?? {},
    accessModes: [],
    mountOptions: [],
    stageSecret: undefined,
    attach: {},
    publishSecret: csi.nodePublishSecretRef && { name: csi.nodePublishSecretRef.name ?? "", namespace },
  };
}

/** The volume ID in the node's status. */
export const idOf = ({ driver, handle }: Pick<CsiSource, "driver" | "handle">): VolumeId => volumeId(driver, handle);

/** Pure: the error when the driver does not support the volume's lifecycle mode. */
export function lifecycleProblem(source: CsiSource, driver: CSIDriver | undefined): string | undefined {
  const { mode } = source;
  const notSupported = `volume mode ${JSON.stringify(mode)} not supported by driver ${source.driver}`;
  if (driver === undefined) return mode === "Persistent" ? undefined : `${notSupported} (no CSIDriver object)`;
  const modes = driver.spec.volumeLifecycleModes ?? [];
  if (modes.includes(mode)) return undefined;
  return `${notSupported} (only supports [${modes.map((one) => JSON.stringify(one)).join(" ")}])`;
}

/**
 * Pure: whether the kubelet changes the ownership of the volume's files to the Pod's fsGroup.
 * @param policy the driver's `fsGroupPolicy`
 */
export function takesGroup(source: CsiSource, policy: string): boolean {
  if (policy === "None" || source.readOnly) return false;
  if (policy === "File") return true;
  return source.fsType !== "" && source.accessModes.includes("ReadWriteOnce");
}

/** Pure: volume attributes with Pod information, for drivers with `podInfoOnMount`. Source: pkg/volume/csi/csi_mounter.go */
export function podAttributes(source: CsiSource, pod: NodePod, driver: CSIDriver | undefined): Record<string, string> {
  if (driver?.spec.podInfoOnMount !== true) return {};
  const { name, namespace, uid } = pod.metadata;
  return {
    "csi.storage.k8s.io/pod.name": name,
    "csi.storage.k8s.io/pod.namespace": namespace,
    "csi.storage.k8s.io/pod.uid": uid,
    "csi.storage.k8s.io/serviceAccount.name": pod.spec.serviceAccountName ?? "",
    "csi.storage.k8s.io/ephemeral": String(source.mode === "Ephemeral"),
  };
}
