import type { Node, NodeStatus } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
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
import type { PodCidr } from "./pod-cidr.ts";
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
  notify: AgentEvents;
  /** Whether AppArmor profiles can be enforced. */
  appArmor: boolean;
  clock: Clock;
  log: Logger;
  metrics: MetricsRegistry;
}

/** Source: pkg/kubelet/images/image_gc_manager.go Start */
const imageListMs = 30_000;
const runtimeCheckMs = 5_000;

/**
 * The agent's own Node. Nothing is sent or polled before `watchRuntime` and `join`.
 */
export class OwnNode {
  readonly #options: OwnNodeOptions;
  readonly #podCidr: PodCidr;
  #lastHeard: Node | undefined;
  #images: readonly Cri<"Image">[] = [];
  #pressure: Pressure = { memory: false, disk: false, pid: false };
  #registration: Registration | undefined;

  constructor(options: OwnNodeOptions) {
    this.#options = options;
    this.#podCidr = newPodCidr({ runtime: options.runtime, log: options.log });
  }

  /** The Node as stored in the API server; undefined until it was received. */
  registered(): Node | undefined {
    const { api } = this.#options;
    return api?.node.lister.get(this.#options.identity.nodeName) ?? this.#lastHeard;
  }

  /** The registered Node, or the object that will be registered. */
  known(): Node {
    return this.registered() ?? this.#initial();
  }

  /** The node's current status. @param current status in the API server; parts owned by others are kept */
  async status(current: NodeStatus | undefined): Promise<NodeStatus> {
    const { config, runtimeHealth, clock } = this.#options;
    const storageBytes = (await filesystemOf(config.rootDir)).capacityBytes;
    const devices = this.#options.devices();
    return nodeStatus({
      machine: this.#options.identity.machine,
      hostname: this.#options.identity.hostname,
      ips: this.#options.identity.ips,
      maxPods:
        this.#options.config.podsPerCore > 0
          ? Math.min(this.#options.config.maxPods, this.#options.config.podsPerCore * this.#options.identity.machine.cpuCount)
          : this.#options.config.maxPods,
      storageBytes,
      reserved: this.#options.identity.reservations,
      ...(devices !== undefined && { devices }),
      runtime: runtimeHealth.version(),
      kubeletPort: config.port,
      images: this.#images,
      maxImages: config.nodeStatusMaxImages,
      conditions: {
        problems: this.#problems(),
        appArmor: this.#options.appArmor,
        memoryPressure: this.#pressure.memory,
        diskPressure: this.#pressure.disk,
        pidPressure: this.#pressure.pid,
      },
      volumesInUse: this.#options.volumesInUse(),
      current,
      now: clock.now(),
    });
  }

  pressure(): Pressure {
    return this.#pressure;
  }

  /** Sets the pressure conditions and triggers a status update. */
  setPressure(next: Pressure): void {
    this.#pressure = next;
    this.hurry();
  }

  /** Triggers a status update now instead of at the next interval. */
  hurry(): void {
    this.#registration?.hurry();
  }

  /** Starts polling the runtime's status and images. */
  watchRuntime(background: Background): void {
    const { runtime } = this.#options;
    background.every(runtimeCheckMs, "runtime status", () => this.#checkRuntime());
    background.every(imageListMs, "images", async () => {
      this.#images = await runtime.listImages();
    });
  }

  /** Registers the node and maintains it; in standalone mode it only configures the runtime's Pod CIDR. */
  join(background: Background): void {
    const { config, api, log, clock } = this.#options;
    background.add(this.#podCidr.update(config.podCidr));
    if (api === undefined) {
      log.warn("Standalone mode, no API client");
      return;
    }
    this.#registration = joinCluster({
      metrics: this.#options.metrics,
      config,
      api,
      background,
      clock,
      log,
      notify: this.#options.notify,
      nodeName: this.#options.identity.nodeName,
      names: { dnsNames: [this.#options.identity.hostname], ips: this.#options.identity.ips },
      initial: () => this.#initial(),
      status: (current) => this.status(current),
      onUpdate: (node) => {
        this.#lastHeard = node;
        void this.#podCidr.update((node.spec?.podCIDRs ?? []).join(","));
      },
    });
  }

  #initial(): Node {
    const { config } = this.#options;
    return initialNode({
      name: this.#options.identity.nodeName,
      hostname: this.#options.identity.hostname,
      labels: config.nodeLabels,
      taints: config.registerWithTaints,
      schedulable: config.registerSchedulable,
      providerId: config.providerId,
      controllerAttachDetach: config.controllerAttachDetach,
      keepTerminatedPodVolumes: config.keepTerminatedPodVolumes,
      architecture: this.#options.identity.machine.architecture,
      externalCloud: config.cloudProvider === "external",
    });
  }

  #problems(): string[] {
    const { runtimeHealth } = this.#options;
    const network = runtimeHealth.networkProblem();
    return [
      runtimeHealth.silence(),
      this.#options.events.problem(),
      runtimeHealth.problem(),
      network && `container runtime network not ready: ${network}`,
      ...this.#options.problems(),
    ].filter((problem) => problem !== undefined);
  }

  async #checkRuntime(): Promise<void> {
    const { runtimeHealth, log, runtime } = this.#options;
    const before = this.#problems().length;
    await runtimeHealth.check().catch((err) => log.error("Container runtime sanity check failed", err));
    if (runtimeHealth.isReady() && this.#images.length === 0) this.#images = await runtime.listImages();
    if (this.#problems().length !== before) this.hurry();
  }
}
