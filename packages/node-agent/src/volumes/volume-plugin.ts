import type { Volume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { BeginOperation } from "@coxswain/apimachinery/volumes/storage-operations";
import type { DownwardContext } from "../environment/downward-api-env.ts";
import type { NodePod } from "../pod/pod.ts";
import type { PodObjects } from "../pod/pod-objects.ts";
import type { Csi } from "./csi/csi.ts";
import type { FlexVolumes } from "./flex/flex.ts";
import type { LocalVolumes } from "./local-volumes.ts";
import type { Mounter } from "./mount.ts";
import type { FolderQuotas } from "./quota/folder-quotas.ts";
import type { SetUpVolume } from "./volume.ts";

/** Inputs of a volume plugin for one volume. */
export interface VolumeContext {
  pod: NodePod;
  volume: Volume;
  /** True when this process has set up the volume before: containers may use it, and their changes must be kept. */
  isThere: boolean;
  /** Directory for volumes that store files, below the Pod's directory. */
  dir: string;
  objects: PodObjects;
  mounter: Mounter;
  locals: LocalVolumes;
  downward: DownwardContext;
  /** Undefined in standalone mode. */
  csi: Csi | undefined;
  flex: FlexVolumes | undefined;
  /** Undefined when usage is determined by walking directories. */
  quotas: FolderQuotas | undefined;
  /** Undefined until the Node is known. */
  nodeLabels: () => Readonly<Record<string, string>> | undefined;
  now: number;
  /** Feature gate SizeMemoryBackedVolumes. */
  sizesMemory: boolean;
  /** Observes the set-up under the name of the plugin that does the work. */
  observed<T>(plugin: string, work: () => Promise<T>): Promise<T>;
  /** Observes a partial operation. */
  operations: BeginOperation;
  /** Long work is divided into; absent: it is done at once. */
  turns?: Turns | undefined;
  log: Logger;
}

/** A type of volume. `setUp` is called repeatedly and refreshes the contents. */
export interface VolumePlugin {
  /** Directory name: the plugin name with `~` for the slash, `kubernetes.io~empty-dir`. */
  name: string;
  supports(volume: Volume): boolean;
  /** True when the contents follow API objects. */
  refreshed?: boolean;
  /** True when another plugin does the work and calls `observed` with its own name. */
  delegates?: boolean;
  setUp(context: VolumeContext): Promise<SetUpVolume>;
}
