import type { Volume } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { DownwardContext } from "../environment/downward-api-env.ts";
import type { NodePod } from "../pods/pod.ts";
import type { PodObjects } from "../sources/pod-objects.ts";
import type { Mounter } from "./mount.ts";

export interface VolumeContext {
  pod: NodePod;
  volume: Volume;
  /** Where this volume's files go when it has files of its own: below the Pod's folder. */
  dir: string;
  objects: PodObjects;
  mounter: Mounter;
  downward: DownwardContext;
  now: number;
}

export interface SetUpVolume {
  /** On the host; what is mounted into containers. */
  path: string;
  readOnly: boolean;
}

/** One kind of volume. `setUp` may run many times, and brings contents up to date. */
export interface VolumePlugin {
  /** The folder's name: `kubernetes.io/empty-dir` with `~` for the slash. */
  name: string;
  supports(volume: Volume): boolean;
  /** Its contents follow objects that may change. */
  refreshed?: boolean;
  setUp(context: VolumeContext): Promise<SetUpVolume>;
}
