import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type { MeasuredVolume } from "./measure.ts";

/** A volume that is ready to be used by containers. */
export interface SetUpVolume {
  /** Host path that is mounted into containers. */
  path: string;
  readOnly: boolean;
  /** True for a block device, or a link to one, that is passed to containers as a device. */
  device?: boolean;
  /** The group of a persistent volume's annotation, which containers get as a supplemental group. */
  gid?: number;
  /** Current usage; undefined when it cannot be determined. */
  measure?: () => Promise<MeasuredVolume | undefined>;
}

/** Steps of volume set-up, as named in events. */
type VolumeStep =
  | "AttachVolume.Attach failed"
  | "MountVolume.NewMounter initialization failed"
  | "MountVolume.NodeAffinity check failed"
  | "MountVolume.WaitForAttach failed"
  | "MountVolume.MountDevice failed"
  | "MountVolume.SetUp failed"
  | "MountVolume.Setup failed while expanding volume"
  | "MapVolume.NewBlockVolumeMapper initialization failed"
  | "MapVolume.WaitForAttach failed"
  | "MapVolume.SetUpDevice failed"
  | "MapVolume.MapPodDevice failed";

/** A failed step of volume set-up. Events for other errors name the step `MountVolume.SetUp failed`. */
export class VolumeError extends Error {
  readonly step: VolumeStep;
  /** Name of the persistent volume, if any. */
  readonly volume: string;

  constructor(step: VolumeStep, volume: string, cause: unknown) {
    super(messageOf(cause), { cause });
    this.step = step;
    this.volume = volume;
  }
}

/** The volume is not ready because another component has to act first; not a failure. */
export class VolumeWaits extends Error {}

/** The claim of a volume is missing or unusable; reported to the Pod at once. */
export class ClaimError extends Error {}
