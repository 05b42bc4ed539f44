import type { Volume } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { BeginOperation } from "@coxswain/apimachinery/volumes/storage-operations";
import type { DownwardContext } from "../environment/downward-api-env.ts";
import type { NodePod } from "../pods/pod.ts";
import type { PodObjects } from "../sources/pod-objects.ts";
import type { Csi } from "./csi/csi.ts";
import type { FlexVolumes } from "./flex/flex.ts";
import type { MeasuredVolume } from "./measure.ts";
import type { Mounter } from "./mount.ts";
import type { FolderQuotas } from "./quota/folder-quotas.ts";

export interface VolumeContext {
  pod: NodePod;
  volume: Volume;
  /** This agent has brought it up before: containers may use it, and what they did to its files stays. */
  isThere: boolean;
  /** Where this volume's files go when it has files of its own: below the Pod's folder. */
  dir: string;
  objects: PodObjects;
  mounter: Mounter;
  downward: DownwardContext;
  /** Undefined without an API server, which knows of drivers and volumes. */
  csi: Csi | undefined;
  flex: FlexVolumes | undefined;
  /** Undefined where folders are walked. */
  quotas: FolderQuotas | undefined;
  /** Undefined while the node is not known. */
  nodeLabels: () => Readonly<Record<string, string>> | undefined;
  now: number;
  /** SizeMemoryBackedVolumes. */
  sizesMemory: boolean;
  /** Around what a plugin does for the volume, as soon as it is known which that is. */
  observed<T>(plugin: string, work: () => Promise<T>): Promise<T>;
  /** For steps on the way. */
  operations: BeginOperation;
}

export interface SetUpVolume {
  /** On the host; what is mounted into containers. */
  path: string;
  readOnly: boolean;
  /** A device, or a link to one, that containers get as such. */
  device?: boolean;
  /** How full it is now; undefined where nobody can say. Without it a folder of its own is walked. */
  measure?: () => Promise<MeasuredVolume | undefined>;
}

/** Steps on the way to a volume, as events name their failures. */
export type VolumeStep =
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

/** Which step a volume failed at, where that is not to bring the Pod's own volume up. */
export class VolumeError extends Error {
  readonly step: VolumeStep;
  /** Of the persistent volume, where there is one. */
  readonly volume: string;

  constructor(step: VolumeStep, volume: string, cause: unknown) {
    super((cause as Error).message, { cause });
    this.step = step;
    this.volume = volume;
  }
}

/** Nothing went wrong: somebody else has to do something first. */
export class VolumeWaits extends Error {}

/** The claim of a volume is not as it has to be; the Pod is told so at once. */
export class ClaimError extends Error {}

/** One kind of volume. `setUp` may run many times, and brings contents up to date. */
export interface VolumePlugin {
  /** The folder's name: `kubernetes.io/empty-dir` with `~` for the slash. */
  name: string;
  supports(volume: Volume): boolean;
  /** Its contents follow objects that may change. */
  refreshed?: boolean;
  /** Another plugin does the work, and it says which. */
  delegates?: boolean;
  setUp(context: VolumeContext): Promise<SetUpVolume>;
}
