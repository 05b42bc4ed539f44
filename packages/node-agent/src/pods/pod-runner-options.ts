import type { Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { DnsSettings } from "../environment/dns.ts";
import type { AppArmor } from "../host/app-armor.ts";
import type { ContainerKind, NodePod } from "../pod/pod.ts";
import type { PodObjects } from "../pod/pod-objects.ts";
import type { ProbeManager } from "../probes/probe-manager.ts";
import type { Cgroups } from "../resources/cgroups.ts";
import type { DeviceManager } from "../resources/devices/device-manager.ts";
import type { NodeFacts } from "../resources/node-facts.ts";
import type { ResourceManagers } from "../resources/resource-managers.ts";
import type { ContainerDependencies } from "../runtime/containers.ts";
import type { ImagePuller } from "../runtime/images.ts";
import type { StatusManager } from "../status/status-manager.ts";
import type { Mounter } from "../volumes/mount.ts";
import type { VolumeManager } from "../volumes/volume-manager.ts";

export interface PodRunnerOptions {
  containers: ContainerDependencies;
  images: ImagePuller;
  volumes: VolumeManager;
  /** `--keep-terminated-pod-volumes`: volumes of terminated Pods stay mounted until the Pod is deleted. */
  keepTerminatedPodVolumes?: boolean;
  objects: PodObjects;
  cgroups: Cgroups;
  probes: ProbeManager;
  status: StatusManager;
  mounter: Mounter;
  clock: Clock;
  /** Long work is divided into; absent: it is done at once. */
  turns?: Turns | undefined;
  log: Logger;
  node: NodeFacts;
  /** Exclusive resources and devices; absent when there are no resource managers. */
  resources?: Pick<ResourceManagers, "placementOf" | "started"> & Pick<DeviceManager, "accessOf">;
  dns: () => DnsSettings;
  /** All services of the cluster; undefined until the informer has synced. */
  services: () => readonly Service[] | undefined;
  /** Prefix of container IDs: `containerd://…`. */
  runtimeName?: () => string | undefined;
  /** The reason why the Pod network is not ready; undefined when it is. */
  networkProblem: () => string | undefined;
  runtimeHandler: (pod: NodePod) => Promise<string>;
  /** Called for each start of a sandbox or container, and again with the reason when it failed. */
  onStart?: (what: "pod" | ContainerKind, failure?: string) => void;
  /** Absent in tests of machines without it. */
  appArmor?: Pick<AppArmor, "refusal">;
  /** Called before anything is created for a Pod; creates the mirror Pods of static Pods. */
  prepare?: (pod: NodePod) => Promise<void>;
}
