import { type FlexDriver, type FlexDrivers, NotSupported, newFlexDrivers } from "@coxswain/apimachinery/flex-volumes/driver";
import { driverOptions, type FlexVolume } from "@coxswain/apimachinery/flex-volumes/volume";
import type { Lister } from "@coxswain/apimachinery/informers/lister";
import type { AttachedVolume, Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { parsePluginVolumeId, parseVolumeId, pluginVolumeId, type VolumeId } from "@coxswain/apimachinery/volumes/volume-id";
import type { DesiredVolumes } from "./desired-volumes.ts";
import { isManaged } from "./managed-node.ts";
import type { Attached } from "./plan.ts";

interface FlexAttacherOptions {
  /** `--flex-volume-plugin-dir` */
  readonly pluginDir: string;
  readonly nodes: Lister<Node>;
  readonly log: Logger;
  /** Called when the state of a volume on a node changed; both have to be reconciled. */
  readonly onChange: (id: VolumeId, node: string) => void;
  /** Called when a driver was found: volumes that were not attachable may now be. */
  readonly onDriver: () => void;
}

interface Attachment {
  readonly device: string;
  /** True when an attach call failed, so the volume may or may not be attached. */
  readonly uncertain: boolean;
}

/** A volume that a Pod needs and that is recorded as attached. */
interface DesiredAttachment {
  readonly id: VolumeId;
  readonly node: string;
  readonly volume: FlexVolume;
  readonly before: Attachment;
}

/**
 * Attaches flex volumes by executing their drivers, which are programs below the plugin directory. Keeps the attached volumes in
 * memory; initialised from the nodes' status when a driver is first found.
 * Source: pkg/volume/flexvolume attacher.go, detacher.go; attach_detach_controller.go populateActualStateOfWorld
 */
export class FlexAttacher {
  readonly #options: FlexAttacherOptions;
  readonly #drivers: FlexDrivers;
  /** Drivers that are known to support attaching. */
  readonly #attaching = new Set<string>();
  readonly #probing = new Set<string>();
  readonly #verifying = new Set<string>();
  readonly #attachments = new Map<VolumeId, Map<string, Attachment>>();

  constructor(options: FlexAttacherOptions) {
    this.#options = options;
    this.#drivers = newFlexDrivers(options.pluginDir);
  }

  /** Whether the driver is known to support attaching. An unknown driver is probed in the background. */
  attaches(driver: string): boolean {
    if (!this.#attaching.has(driver)) void this.#probe(driver);
    return this.#attaching.has(driver);
  }

  /** Whether the volume belongs to a flex driver that is known to support attaching. */
  owns(id: VolumeId): boolean {
    return this.#attaching.has(driverOf(id) ?? "");
  }

  /** Starts probing for newly installed drivers. */
  async scan(): Promise<void> {
    for (const name of await this.#drivers.names()) void this.#probe(name);
  }

  /** @throws Error with the driver's message; the volume is then in an uncertain state */
  async attach(volume: FlexVolume, node: string): Promise<void> {
    const id = pluginVolumeId(volume.driver, volume.name);
    try {
      const driver = await this.#find(volume.driver);
      // So that the driver can reject the volume. The returned name is not used.
      await driver.call("getvolumename", driverOptions(volume)).catch(unlessNotSupported);
      const response = await driver.call("attach", driverOptions(volume), node).catch(unlessNotSupported);
      this.#set(id, node, { device: response?.device ?? "", uncertain: false });
    } catch (err) {
      this.#set(id, node, { device: "", uncertain: true });
      throw err;
    }
  }

  /** @throws Error with the driver's message */
  async detach(id: VolumeId, node: string): Promise<void> {
    const { plugin = "", name = "" } = parsePluginVolumeId(id) ?? {};
    const driver = await this.#find(plugin);
    await driver.call("detach", name, node).catch(unlessNotSupported);
    this.#delete(id, node);
  }

  /**
   * Asks the drivers whether their volumes are still attached. Drivers run in parallel; one that still runs from the
   * last call is skipped.
   */
  async verify(desired: DesiredVolumes): Promise<void> {
    const byDriver = Map.groupBy(this.#attachedOf(desired), ({ volume }) => volume.driver);
    await Promise.all([...byDriver].map(([driver, attachments]) => this.#verifyDriver(driver, attachments)));
  }

  of(id: VolumeId): Attached[] {
    return [...(this.#attachments.get(id) ?? [])].map(([node, { uncertain }]) => ({
      node,
      name: id,
      attached: !uncertain,
      uncertain,
      deleting: false,
      inUse: this.#options.nodes.get(node)?.status?.volumesInUse?.includes(id) ?? false,
    }));
  }

  /** Attached volumes of the node in the form of `status.volumesAttached`. */
  onNode(node: string): AttachedVolume[] {
    return [...this.#attachments].flatMap(([name, byNode]) => {
      const attachment = byNode.get(node);
      return attachment === undefined || attachment.uncertain ? [] : [{ name, devicePath: attachment.device }];
    });
  }

  /** One entry for each attached volume and node. */
  attached(): VolumeId[] {
    return [...this.#attachments].flatMap(([id, byNode]) => [...byNode.keys()].map(() => id));
  }

  #set(id: VolumeId, node: string, attachment: Attachment): void {
    this.#attachments.getOrInsertComputed(id, () => new Map()).set(node, attachment);
    this.#options.onChange(id, node);
  }

  #delete(id: VolumeId, node: string): void {
    const byNode = this.#attachments.get(id);
    byNode?.delete(node);
    if (byNode?.size === 0) this.#attachments.delete(id);
    this.#options.onChange(id, node);
  }

  async #probe(name: string): Promise<void> {
    if (this.#attaching.has(name) || this.#probing.has(name)) return;
    this.#probing.add(name);
    try {
      const driver = await this.#drivers.find(name);
      if (driver?.capabilities.attach !== true) return;
      this.#attaching.add(name);
      this.#restore(name);
      this.#options.onDriver();
    } catch (err) {
      this.#options.log.error("cannot query the capabilities of a flex volume driver", err, { driver: name });
    } finally {
      this.#probing.delete(name);
    }
  }

  /** Restores the attachments made before this process started. */
  #restore(driver: string): void {
    for (const node of this.#options.nodes.list()) {
      if (!isManaged(node)) continue;
      for (const { name, devicePath } of node.status?.volumesAttached ?? [])
        if (driverOf(name) === driver) this.#set(name, node.metadata.name ?? "", { device: devicePath, uncertain: false });
    }
  }

  async #find(name: string): Promise<FlexDriver> {
    const driver = await this.#drivers.find(name);
    if (driver === undefined) throw new Error("no volume plugin matched");
    return driver;
  }

  async #isAttached(volume: FlexVolume, node: string): Promise<boolean> {
    try {
      const driver = await this.#find(volume.driver);
      return (await driver.call("isattached", driverOptions(volume), node)).attached;
    } catch (err) {
      if (!(err instanceof NotSupported))
        this.#options.log.error("cannot query whether a volume is attached", err, { volume: volume.name, node });
      return true;
    }
  }

  /** Forgets volumes that their driver reports as not attached. */
  async #verifyDriver(driver: string, attachments: readonly DesiredAttachment[]): Promise<void> {
    if (this.#verifying.has(driver)) return;
    this.#verifying.add(driver);
    try {
      for (const { id, node, volume, before } of attachments) {
        const attached = await this.#isAttached(volume, node);
        if (!attached && this.#attachments.get(id)?.get(node) === before) this.#delete(id, node);
      }
    } finally {
      this.#verifying.delete(driver);
    }
  }

  *#attachedOf(desired: DesiredVolumes): Generator<DesiredAttachment> {
    for (const id of desired.ids()) {
      for (const [node, { volume }] of desired.of(id)) {
        const before = this.#attachments.get(id)?.get(node);
        if ("flex" in volume && before?.uncertain === false) yield { id, node, volume: volume.flex, before };
      }
    }
  }
}

function driverOf(id: VolumeId): string | undefined {
  return parseVolumeId(id) === undefined ? parsePluginVolumeId(id)?.plugin : undefined;
}

function unlessNotSupported(err: unknown): undefined {
  if (!(err instanceof NotSupported)) throw err;
}
