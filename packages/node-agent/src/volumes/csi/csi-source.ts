import { createHash } from "node:crypto";
import type { PersistentVolume, SecretReference, Volume } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { CSIDriver, VolumeAttachmentSource } from "@coxswain/apimachinery/schema/kinds/storage/v1";
import { type VolumeId, volumeId } from "@coxswain/apimachinery/volumes/volume-id";
import type { NodePod } from "../../pods/pod.ts";

/** A CSI volume of a Pod, wherever it is described. */
export interface CsiSource {
  /** Of the persistent volume, or of the volume in the Pod: names its folders. */
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
  /** As its VolumeAttachment names it. */
  attach: VolumeAttachmentSource;
}

/** @returns undefined for a volume of another kind */
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

/** A volume that is described in the Pod, and lives as long as it does. */
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

export const idOf = ({ driver, handle }: Pick<CsiSource, "driver" | "handle">): VolumeId => volumeId(driver, handle);

/** Pure: why a driver does not take such a volume. */
export function lifecycleProblem(source: CsiSource, driver: CSIDriver | undefined): string | undefined {
  const { mode } = source;
  const notSupported = `volume mode ${JSON.stringify(mode)} not supported by driver ${source.driver}`;
  if (driver === undefined) return mode === "Persistent" ? undefined : `${notSupported} (no CSIDriver object)`;
  const modes = driver.spec.volumeLifecycleModes ?? [];
  if (modes.includes(mode)) return undefined;
  return `${notSupported} (only supports [${modes.map((one) => JSON.stringify(one)).join(" ")}])`;
}

/** Pure: whether files of the volume are to be given to the Pod's group. */
export function takesGroup(source: CsiSource, policy: string): boolean {
  if (policy === "None" || source.readOnly) return false;
  if (policy === "File") return true;
  return source.fsType !== "" && source.accessModes.includes("ReadWriteOnce");
}

/** Pure: what a driver that asks for it is told of the Pod. Source: pkg/volume/csi/csi_mounter.go */
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
