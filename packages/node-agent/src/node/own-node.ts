import type { Clock } from "@coxswain/apimachinery/clock/clock";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import type { MetricsRegistry } from "@coxswain/apimachinery/metrics/registry";
import type { Node, NodeStatus } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { AgentConfig } from "../agent-config.ts";
import type { Background } from "../background.ts";
import type { AgentEvents } from "../events.ts";
import type { Pressure } from "../resources/eviction-thresholds.ts";
import { filesystemOf } from "../resources/machine.ts";
import type { Cri } from "../runtime/cri-schema.ts";
import type { LifecycleEvents } from "../runtime/lifecycle-events.ts";
import type { ContainerRuntime } from "../runtime/runtime.ts";
import type { ApiConnection } from "./api-connection.ts";
import type { NodeIdentity } from "./identity.ts";
import { joinCluster } from "./join-cluster.ts";
import { initialNode, type NodeStatusInput, nodeStatus } from "./node-status.ts";
import { newPodCidr } from "./pod-cidr.ts";
import type { Registration } from "./registration.ts";
import type { RuntimeHealth } from "./runtime-health.ts";

export interface OwnNodeOptions {
  config: AgentConfig;
  identity: NodeIdentity;
  /** Undefined in standalone mode: the node is not registered. */
  api: ApiConnection | undefined;
  runtime: ContainerRuntime;
  runtimeHealth: RuntimeHealth;
  events: Pick<LifecycleEvents, "problem">;
  /** Reasons for not being ready from modules that are created later, in addition to those of the runtime. */
  problems: () => readonly (string | undefined)[];
  devices: () => NodeStatusInput["devices"] | undefined;
  volumesInUse: () => readonly string[] | undefined;
  tell: AgentEvents;
  metrics: MetricsRegistry;
  clock: Clock;
  log: Logger;
}

/** The agent's own Node. */
export interface OwnNode {
  /** The Node as stored in the API server; undefined until it was received. */
  registered(): Node | undefined;
  /** The registered Node, or the object that will be registered. */
  known(): Node;
  /** The node's current status. @param current status in the API server; parts owned by others are kept */
  status(current: NodeStatus | undefined): Promise<NodeStatus>;
  pressure(): Pressure;
  setPressure(pressure: Pressure): void;
  /** Triggers a status update now instead of at the next interval. */
  hurry(): void;
  /** Starts polling the runtime's status and images. */
  watchRuntime(background: Background): void;
  /** Registers the node and maintains it; in standalone mode it only configures the runtime's Pod CIDR. */
  join(background: Background): void;
}

/** Source: pkg/kubelet/images/image_gc_manager.go Start */
const imageListMs = 30_000;
const runtimeCheckMs = 5_000;

/** Creates the node's state; nothing is sent or polled before `watchRuntime` and `join`. */
export function newOwnNode(options: OwnNodeOptions): OwnNode {
  const { config, identity, api, runtime, runtimeHealth, clock, log } = options;
  const { machine, reservations, hostname, nodeName, ips } = identity;
  const { maxPods, podsPerCore } = config;
  const podCidr = newPodCidr({ runtime, log });
  let lastHeard: Node | undefined;
  let images: readonly Cri<"Image">[] = [];
  let pressure: Pressure = { memory: false, disk: false, pid: false };
  let registration: Registration | undefined;

  const initial = (): Node =>
    initialNode({
      name: nodeName,
      hostname,
      labels: config.nodeLabels,
      taints: config.registerWithTaints,
      schedulable: config.registerSchedulable,
      providerId: config.providerId,
      controllerAttachDetach: config.controllerAttachDetach,
      keepTerminatedPodVolumes: config.keepTerminatedPodVolumes,
      architecture: machine.architecture,
    });
  const registered = (): Node | undefined => api?.node.lister.get(nodeName) ?? lastHeard;
  const hurry = (): void => registration?.hurry();

  function problems(): string[] {
    const network = runtimeHealth.networkProblem();
    return [
      runtimeHealth.silence(),
      options.events.problem(),
      runtimeHealth.problem(),
      network && `container runtime network not ready: ${network}`,
      ...options.problems(),
    ].filter((problem) => problem !== undefined);
  }

  async function status(current: NodeStatus | undefined): Promise<NodeStatus> {
    const storageBytes = (await filesystemOf(config.rootDir)).capacityBytes;
    const devices = options.devices();
    return nodeStatus({
      machine,
      hostname,
      ips,
      maxPods: podsPerCore > 0 ? Math.min(maxPods, podsPerCore * machine.cpuCount) : maxPods,
      storageBytes,
      reserved: reservations,
      ...(devices !== undefined && { devices }),
      runtime: runtimeHealth.version(),
      kubeletPort: config.port,
      images,
      maxImages: config.nodeStatusMaxImages,
      conditions: {
        problems: problems(),
        memoryPressure: pressure.memory,
        diskPressure: pressure.disk,
        pidPressure: pressure.pid,
      },
      volumesInUse: options.volumesInUse(),
      current,
      now: clock.now(),
    });
  }

  async function checkRuntime(): Promise<void> {
    const before = problems().length;
    await runtimeHealth.check().catch((err) => log.error("Container runtime sanity check failed", err));
    if (runtimeHealth.isReady() && images.length === 0) images = await runtime.listImages();
    if (problems().length !== before) hurry();
  }

  return {
    registered,
    known: () => registered() ?? initial(),
    status,
    pressure: () => pressure,
    setPressure(next) {
      pressure = next;
      hurry();
    },
    hurry,
    watchRuntime(background) {
      background.every(runtimeCheckMs, "runtime status", checkRuntime);
      background.every(imageListMs, "images", async () => {
        images = await runtime.listImages();
      });
    },
    join(background) {
      background.add(podCidr.update(config.podCidr));
      if (api === undefined) return log.warn("Standalone mode, no API client");
      registration = joinCluster({
        config,
        api,
        background,
        clock,
        log,
        metrics: options.metrics,
        tell: options.tell,
        nodeName,
        names: { dnsNames: [hostname], ips },
        initial,
        status,
        onUpdate(node) {
          lastHeard = node;
          void podCidr.update((node.spec?.podCIDRs ?? []).join(","));
        },
      });
    },
  };
}
