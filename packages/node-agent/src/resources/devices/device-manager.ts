import { join } from "node:path";
import { isExtendedResource } from "@coxswain/apimachinery/objects/validation/resource-names";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { PluginHandler } from "../../plugins/plugin-registry.ts";
import type { AnyContainer, NodePod } from "../../pod/pod.ts";
import { quantityOf, type ResourceList, sumOverPod } from "../../pod/pod-resources.ts";
import type { CheckpointFile } from "../checkpoint-file.ts";
import { newCheckpointFile } from "../checkpoint-file.ts";
import type { Hint, Hints } from "../topology/hints.ts";
import type { HintProvider } from "../topology/topology-manager.ts";
import { chooseDevices, deviceHints, nodesOf } from "./choose-devices.ts";
import { type DeviceCheckpoint, deviceCheckpointForm, type GivenDevices } from "./device-checkpoint.ts";
import { newPluginClient, type PluginClient } from "./plugin-client.ts";
import { type DeviceAccess, type PluginDevice, type PluginOptions, pluginMessages } from "./plugin-schema.ts";
import { type Registered, serveRegistration, supportedVersions } from "./registration-server.ts";

interface Plugin {
  client: PluginClient | undefined;
  options: PluginOptions;
  /** Monotonic time of the disconnect; undefined while connected. */
  stoppedAt: number | undefined;
}

const checkpointName = "kubelet_internal_checkpoint";
/** Time after which the devices of a disconnected plugin are removed from the node. */
const graceMs = 5 * 60_000;

interface DeviceManagerOptions {
  /** `<root-dir>/device-plugins`. */
  dir: string;
  numaNodes: readonly number[];
  clock: Clock;
  /** The allocation of tens of thousands of devices is divided into; absent: at once. */
  turns?: Turns | undefined;
  log: Logger;
  /** Called when the node's extended resources have changed. */
  onChange: () => void;
  onRegistered?: (resource: string) => void;
  onAllocated?: (resource: string, ms: number) => void;
  connect?: (socket: string) => PluginClient;
}

/** Numbers of devices by resource, as in a Node's `capacity`. */
export type DeviceCounts = Readonly<Record<string, string>>;

/**
 * Allocates the devices of device plugins to containers.
 * Restores allocations from the checkpoint in `dir`; an unreadable checkpoint is logged and ignored.
 * Source: pkg/kubelet/cm/devicemanager/manager.go
 */
export class DeviceManager implements HintProvider {
  /** Handles device plugins that are discovered through the plugin registration directory. */
  readonly handler: PluginHandler;
  readonly #options: DeviceManagerOptions;
  readonly #connect: (socket: string) => PluginClient;
  readonly #file: CheckpointFile<DeviceCheckpoint>;
  readonly #plugins = new Map<string, Plugin>();
  readonly #devices = new Map<string, ReadonlyMap<string, PluginDevice>>();
  /** Resources whose plugin did not return; the node's status keeps them with the amount 0 until it lists devices again. */
  readonly #gone = new Set<string>();
  #given: GivenDevices[] = [];
  #reusable: { uid: string; devices: Map<string, Set<string>> } = { uid: "", devices: new Map() };

  constructor(options: DeviceManagerOptions) {
    this.#options = options;
    const { dir, connect = newPluginClient } = options;
    this.#connect = connect;
    this.#file = newCheckpointFile(join(dir, checkpointName), deviceCheckpointForm);
    this.#restore();
    this.handler = {
      validate(resource, _, versions) {
        if (!versions.some((version) => supportedVersions.includes(version))) {
          const supported = `[${supportedVersions.join(" ")}]`;
          throw new Error(`manager version, ${supported}, is not among plugin supported versions [${versions.join(" ")}]`);
        }
        if (!isExtendedResource(resource)) throw new Error(`invalid name of device plugin socket: ${resource}`);
      },
      register: async (resource, socket) => {
        const client = this.#connect(socket);
        try {
          this.#onRegistered({ resource, socket, options: await client.options() });
        } finally {
          client.close();
        }
      },
      deregister: (resource) => this.#plugins.get(resource)?.client?.close(),
    };
  }

  /** Serves the registration socket of device plugins. */
  async start(signal: AbortSignal): Promise<void> {
    const { dir, log } = this.#options;
    const server = await serveRegistration({
      dir,
      keep: checkpointName,
      onRegistered: (plugin) => this.#onRegistered(plugin),
      log,
    });
    const close = (): void => {
      server.close();
      for (const { client } of this.#plugins.values()) client?.close();
    };
    if (signal.aborted) close();
    else signal.addEventListener("abort", close, { once: true });
  }

  /** Whether the Pod requests a resource of a device plugin. */
  concerns(pod: NodePod): boolean {
    return containersOf(pod).some((one) => [...limitsOf(one).keys()].some((resource) => this.#isOurs(resource)));
  }

  /** NUMA nodes that can provide the container's devices, by resource; devices that it already holds are the only choice. */
  hints(pod: NodePod, container: AnyContainer): Hints {
    return this.#hintsOf(pod, limitsOf(container), (resource) => this.#idsGivenTo(pod.metadata.uid, [container.name], resource));
  }

  /** As `hints`, for all containers of the Pod together. */
  podHints(pod: NodePod): Hints {
    const names = containersOf(pod).map(({ name }) => name);
    return this.#hintsOf(pod, sumOverPod(pod, limitsOf), (resource) => this.#idsGivenTo(pod.metadata.uid, names, resource));
  }

  /** Chooses devices and calls the plugin's Allocate. @throws Error when there are not enough, or the plugin fails */
  async allocate(pod: NodePod, container: AnyContainer, hint: Hint): Promise<void> {
    const { uid } = pod.metadata;
    const isInit = (pod.spec.initContainers ?? []).some(({ name }) => name === container.name);
    for (const [resource, count] of limitsOf(container)) {
      if (!this.#isOurs(resource) || count === 0) continue;
      await this.#give(pod, container, resource, count, hint);
      await this.#options.turns?.next();
      if (this.#reusable.uid !== uid) this.#reusable = { uid, devices: new Map() };
      const left = this.#reusable.devices.get(resource) ?? new Set<string>();
      for (const id of idsOf(this.#find(uid, container.name, resource))) {
        if (isInit) left.add(id);
        else left.delete(id);
      }
      this.#reusable.devices.set(resource, left);
    }
  }

  /**
   * The mounts, devices and environment for the container; calls PreStartContainer on plugins that require it.
   * @throws Error when PreStartContainer fails
   */
  async accessOf(pod: NodePod, container: AnyContainer): Promise<DeviceAccess> {
    const access: Access = { envs: {}, mounts: [], devices: [], annotations: {} };
    for (const [resource, count] of limitsOf(container)) {
      const own = this.#find(pod.metadata.uid, container.name, resource);
      if (own === undefined || count === 0) continue;
      const plugin = this.#plugins.get(resource);
      if (plugin?.options.preStartRequired) {
        await plugin.client?.preStart(idsOf(own)).catch((err: Error) => {
          throw new Error(`device plugin PreStartContainer rpc failed with err: ${err.message}`);
        });
      }
      addAccess(access, pluginMessages.decode("ContainerAllocateResponse", own.answer));
    }
    return access;
  }

  /** The allocations of a container, one for each resource. */
  givenTo(uid: string, container: string): readonly GivenDevices[] {
    return this.#given.filter((one) => one.podUid === uid && one.container === container);
  }

  /** Capacity and allocatable of the extended resources; 0 for resources whose plugin has been gone for the grace period. */
  amounts(): { capacity: DeviceCounts; allocatable: DeviceCounts } {
    this.#forgetLostPlugins();
    const capacity: Record<string, string> = Object.fromEntries([...this.#gone].map((resource) => [resource, "0"]));
    const allocatable: Record<string, string> = { ...capacity };
    for (const [resource, known] of this.#devices) {
      capacity[resource] = String(known.size);
      allocatable[resource] = String(this.#healthyOf(resource).length);
    }
    return { capacity, allocatable };
  }

  /** Allocated devices by resource. Not affected by short interruptions of a plugin. */
  inUse(): ResourceList {
    return Object.fromEntries(
      [...this.#devices.keys()].map((resource) => [resource, String(new Set(this.#usedOf(resource)).size)]),
    );
  }

  /** Healthy devices by resource, whether allocated or not. */
  healthy(): ReadonlyMap<string, readonly PluginDevice[]> {
    return new Map(
      [...this.#devices].map(([resource, known]) => [resource, [...known.values()].filter(({ health }) => health === "Healthy")]),
    );
  }

  /**
   * Releases the devices of all Pods except these, and writes the checkpoint. @throws Error when the checkpoint cannot be
   * written
   */
  release(pods: readonly NodePod[]): void {
    const uids = new Set(pods.map(({ metadata }) => metadata.uid));
    const kept = this.#given.filter(({ podUid }) => uids.has(podUid));
    if (kept.length === this.#given.length) return;
    this.#given = kept;
    this.#save();
  }

  #save(): void {
    const registered = new Map([...this.#devices.keys()].map((resource) => [resource, this.#healthyOf(resource)]));
    this.#file.save({ given: this.#given, registered });
  }

  /**
   * As `#save`, but logs an error: in the event handler of a plugin's stream, an error such as a full disk would end the agent.
   * Source: pkg/kubelet/cm/devicemanager/manager.go genericDeviceUpdateCallback
   */
  #trySave(): void {
    const { log } = this.#options;
    try {
      this.#save();
    } catch (err) {
      log.error("Writing checkpoint encountered", err);
    }
  }

  #restore(): void {
    const { log, clock } = this.#options;
    let kept: DeviceCheckpoint | undefined;
    try {
      kept = this.#file.load();
    } catch (err) {
      log.error("Continue after failing to read checkpoint file. Device allocation info may NOT be up-to-date", err);
    }
    this.#given = [...(kept?.given ?? [])];
    // Restored devices count only after their plugin has registered again.
    for (const resource of kept?.registered.keys() ?? []) {
      this.#devices.set(resource, new Map());
      this.#plugins.set(resource, { client: undefined, options: noOptions, stoppedAt: clock.monotonic() });
    }
  }

  #healthyOf(resource: string): string[] {
    return [...(this.#devices.get(resource)?.values() ?? [])].filter(({ health }) => health === "Healthy").map(({ ID }) => ID);
  }

  #usedOf(resource: string): string[] {
    return this.#given.filter((one) => one.resource === resource).flatMap(({ byNode }) => [...byNode.values()].flat());
  }

  #isOurs(resource: string): boolean {
    return this.#devices.has(resource) || this.#given.some((one) => one.resource === resource);
  }

  #find(uid: string, container: string, resource: string): GivenDevices | undefined {
    return this.#given.find((one) => one.podUid === uid && one.container === container && one.resource === resource);
  }

  #reusableOf(uid: string, resource: string): string[] {
    return this.#reusable.uid === uid ? [...(this.#reusable.devices.get(resource) ?? [])] : [];
  }

  /** Watches a plugin's devices until it disconnects or another plugin takes over the resource. */
  async #follow({ resource, socket, options: own }: Registered): Promise<void> {
    const { onChange, log, clock } = this.#options;
    const client = this.#connect(socket);
    const before = this.#plugins.get(resource);
    const plugin: Plugin = { client, options: own, stoppedAt: undefined };
    this.#plugins.set(resource, plugin);
    before?.client?.close();
    this.#options.onRegistered?.(resource);
    await client.watch((list) => {
      if (this.#plugins.get(resource) !== plugin) return;
      this.#devices.set(resource, new Map(list.map((device) => [device.ID, device])));
      this.#trySave();
      onChange();
    });
    client.close();
    if (this.#plugins.get(resource) !== plugin) return;
    log.info("Device plugin disconnected", { resourceName: resource });
    plugin.client = undefined;
    plugin.stoppedAt = clock.monotonic();
    const last = this.#devices.get(resource) ?? new Map<string, PluginDevice>();
    this.#devices.set(resource, new Map([...last].map(([id, device]) => [id, { ...device, health: "Unhealthy" }])));
    this.#trySave();
    onChange();
  }

  #forgetLostPlugins(): void {
    const { clock } = this.#options;
    for (const [resource, { stoppedAt }] of this.#plugins) {
      if (stoppedAt === undefined || clock.monotonic() - stoppedAt < graceMs) continue;
      this.#plugins.delete(resource);
      this.#devices.delete(resource);
      this.#gone.add(resource);
      this.#trySave();
    }
  }

  async #give(pod: NodePod, container: AnyContainer, resource: string, count: number, hint: Hint): Promise<void> {
    const { clock, turns } = this.#options;
    const { uid } = pod.metadata;
    await turns?.next();
    const has = this.#find(uid, container.name, resource);
    if (has !== undefined) {
      const number = idsOf(has).length;
      if (number === count) return;
      throw new Error(
        `pod ${JSON.stringify(uid)} container ${JSON.stringify(container.name)} changed request for resource ${JSON.stringify(resource)} from ${number} to ${count}`,
      );
    }
    const known = this.#devices.get(resource);
    if (known === undefined) throw new Error(`can't allocate unregistered device ${resource}`);
    const used = new Set(this.#usedOf(resource));
    const plugin = this.#plugins.get(resource);
    const chosen = await chooseDevices({
      resource,
      count,
      devices: known,
      reusable: this.#reusableOf(uid, resource),
      available: this.#healthyOf(resource).filter((id) => !used.has(id)),
      hint,
      prefer: async (available, mustInclude, size) =>
        plugin?.options.getPreferredAllocationAvailable
          ? ((await plugin.client?.preferred(available, mustInclude, size)) ?? [])
          : [],
    });
    if (plugin?.client === undefined) throw new Error(`unknown Device Plugin ${resource}`);
    const started = clock.monotonic();
    const { bytes } = await plugin.client.allocate(chosen);
    this.#options.onAllocated?.(resource, clock.monotonic() - started);
    await turns?.next();
    const byNode = new Map<number, string[]>();
    for (const id of chosen) {
      const nodes = nodesOf(known.get(id));
      for (const node of nodes.length === 0 ? [-1] : nodes) byNode.getOrInsert(node, []).push(id);
    }
    await turns?.next();
    this.#given.push({ podUid: uid, container: container.name, resource, byNode, answer: bytes });
    this.#save();
  }

  #hintsOf(pod: NodePod, request: ReadonlyMap<string, number>, has: (resource: string) => string[]): Hints {
    const hints = new Map<string, readonly Hint[] | undefined>();
    for (const [resource, count] of request) {
      const known = this.#devices.get(resource);
      if (!this.#isOurs(resource) || count === 0) continue;
      if (known === undefined || ![...known.values()].some(({ topology }) => topology !== null)) {
        hints.set(resource, undefined);
        continue;
      }
      const own = has(resource);
      if (own.length > 0) {
        const again =
          own.length === count ? deviceHints(this.#options.numaNodes, known, { available: own, reusable: [] }, count) : [];
        hints.set(resource, again);
        continue;
      }
      const used = new Set(this.#usedOf(resource));
      const available = this.#healthyOf(resource).filter((id) => !used.has(id));
      const counted = { available, reusable: this.#reusableOf(pod.metadata.uid, resource) };
      hints.set(resource, deviceHints(this.#options.numaNodes, known, counted, count));
    }
    return hints;
  }

  #idsGivenTo(uid: string, names: readonly string[], resource: string): string[] {
    return [...new Set(names.flatMap((name) => idsOf(this.#find(uid, name, resource))))];
  }

  #onRegistered(plugin: Registered): void {
    const { log } = this.#options;
    void this.#follow(plugin).catch((err) =>
      log.error("cannot watch the devices of a plugin", err, { resourceName: plugin.resource }),
    );
  }
}

const idsOf = (one: GivenDevices | undefined): string[] => [...new Set([...(one?.byNode.values() ?? [])].flat())];

const noOptions: PluginOptions = { preStartRequired: false, getPreferredAllocationAvailable: false };

const containersOf = (pod: NodePod): AnyContainer[] => [...(pod.spec.initContainers ?? []), ...pod.spec.containers];

function limitsOf(container: AnyContainer): Map<string, number> {
  const limits = ("resources" in container ? container.resources?.limits : undefined) ?? {};
  const extended = Object.keys(limits).filter((name) => name.includes("/"));
  return new Map(extended.map((name) => [name, quantityOf(limits, name).value()]));
}

interface Access {
  envs: Record<string, string>;
  mounts: DeviceAccess["mounts"];
  devices: DeviceAccess["devices"];
  annotations: Record<string, string>;
}

/** When several plugins set the same name or path, the first one wins. */
function addAccess(access: Access, { envs, mounts, devices, annotations }: DeviceAccess): void {
  access.envs = { ...envs, ...access.envs };
  access.annotations = { ...annotations, ...access.annotations };
  access.devices = withOtherPaths(access.devices, devices);
  access.mounts = withOtherPaths(access.mounts, mounts);
}

function withOtherPaths<T extends { containerPath: string }>(first: readonly T[], then: readonly T[]): readonly T[] {
  const paths = new Set(first.map(({ containerPath }) => containerPath));
  return [...first, ...then.filter(({ containerPath }) => !paths.has(containerPath))];
}
