import type { PersistentVolume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { defaultSource } from "../pods/defaults.ts";

/** Source: pkg/apis/core/v1/defaults.go */
export function defaultPersistentVolume(volume: PersistentVolume): void {
  volume.status ??= {};
  volume.status.phase ||= "Pending";
  volume.spec ??= {};
  const { spec } = volume;
  spec.persistentVolumeReclaimPolicy ||= "Retain";
  spec.volumeMode ??= "Filesystem";
  defaultSource(spec);
}
