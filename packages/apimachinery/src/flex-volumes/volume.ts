import { encodeUntyped } from "../objects/codec/json.ts";
import type { FlexPersistentVolumeSource, FlexVolumeSource } from "../objects/schema/kinds/core/v1.ts";

/** A flex volume, inline or persistent, as it is described to its driver. */
export interface FlexVolume {
  /** `vendor/driver` */
  readonly driver: string;
  /** Name of the persistent volume, or of the Pod's volume. */
  readonly name: string;
  readonly fsType: string;
  readonly readOnly: boolean;
  readonly options: Readonly<Record<string, string>>;
}

/**
 * @param name of the persistent volume, or of the Pod's volume
 * @param readOnly of the mount; the source's own field is not read
 */
export function flexVolumeOf(
  source: FlexVolumeSource | FlexPersistentVolumeSource,
  { name, readOnly }: Pick<FlexVolume, "name" | "readOnly">,
): FlexVolume {
  return { driver: source.driver, name, fsType: source.fsType ?? "", readOnly, options: source.options ?? {} };
}

/**
 * The JSON options argument of driver calls; options of the volume take precedence.
 * @param more options that are specific to some commands
 * Source: pkg/volume/flexvolume driver-call.go NewOptionsForDriver
 */
export function driverOptions(volume: FlexVolume, more: Readonly<Record<string, string>> = {}): string {
  const options = {
    "kubernetes.io/fsType": volume.fsType,
    "kubernetes.io/readwrite": volume.readOnly ? "ro" : "rw",
    "kubernetes.io/pvOrVolumeName": volume.name,
    ...more,
  };
  return encodeUntyped(Object.fromEntries([...Object.entries(options), ...Object.entries(volume.options)])).toString();
}
