import { type FlexDriver, NotSupported, newFlexDrivers } from "@coxswain/apimachinery/flex-volumes/driver";
import { driverOptions, type FlexVolume } from "@coxswain/apimachinery/flex-volumes/volume";
import type { Lister } from "@coxswain/apimachinery/informers/lister";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import type { AttachedVolume, Node } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { parsePluginVolumeId, parseVolumeId, pluginVolumeId, type VolumeId } from "@coxswain/apimachinery/volumes/volume-id";
import { isManaged } from "./managed-node.ts";
import type { Attached } from "./plan.ts";
import type { WantedVolumes } from "./wanted.ts";

/** Attaches flex volumes by executing their drivers, which are programs below the plugin directory. */
export interface FlexAttacher {
  /** Whether the driver is known to support attaching. An unknown driver is probed in the background. */
  attaches(driver: string): boolean;
  /** Whether the volume belongs to a flex driver that is known to support attaching. */
  owns(id: VolumeId): boolean;
  /** Starts probing for newly installed drivers. */
  scan(): Promise<void>;
  /** @throws Error with the driver's message; the volume is then in an uncertain state */
  attach(volume: FlexVolume, node: string): Promise<void>;
  /** @throws Error with the driver's message */
  detach(id: VolumeId, node: string): Promise<void>;
  /**
   * Asks the drivers whether their volumes are still attached. Drivers run in parallel; one that still runs from the
   * last call is skipped.
   */
  verify(wanted: WantedVolumes): Promise<void>;
  of(id: VolumeId): Attached[];
  /** Attached volumes of the node in the form of `status.volumesAttached`. */
  onNode(node: string): AttachedVolume[];
  /** One entry for each attached volume and node. */
  attached(): VolumeId[];
}

export interface FlexAttacherOptions {
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
interface WantedAttachment {
  readonly id: VolumeId;
  readonly node: string;
  readonly volume: FlexVolume;
  readonly before: Attachment;
}

/**
 * Keeps the attached volumes in memory; initialised from the nodes' status when a driver is first found.
 * Source: pkg/volume/flexvolume attacher.go, detacher.go; attach_detach_controller.go populateActualStateOfWorld
 */
export function newFlexAttacher({ pluginDir, nodes, log, onChange, onDriver }: FlexAttacherOptions): FlexAttacher {
  const drivers = newFlexDrivers(pluginDir);
  const attaching = new Set<string>();
  const looking = new Set<string>();
  const verifying = new Set<string>();
  const attachments = new Map<VolumeId, Map<string, Attachment>>();

  const note = (id: VolumeId, node: string, attachment: Attachment): void => {
    attachments.getOrInsertComputed(id, () => new Map()).set(node, attachment);
    onChange(id, node);
  };
  const forget = (id: VolumeId, node: string): void => {
    const onNodes = attachments.get(id);
    onNodes?.delete(node);
    if (onNodes?.size === 0) attachments.delete(id);
    onChange(id, node);
  };
  const driverOf = (id: VolumeId): string | undefined =>
    parseVolumeId(id) === undefined ? parsePluginVolumeId(id)?.plugin : undefined;

  async function look(name: string): Promise<void> {
    if (attaching.has(name) || looking.has(name)) return;
    looking.add(name);
    try {
      const driver = await drivers.find(name);
      if (driver?.capabilities.attach !== true) return;
      attaching.add(name);
      recall(name);
      onDriver();
    } catch (err) {
      log.error("a flex volume driver cannot be asked what it can do", err, { driver: name });
    } finally {
      looking.delete(name);
    }
  }

  /** Restores the attachments made before this process started. */
  function recall(driver: string): void {
    for (const node of nodes.list()) {
      if (!isManaged(node)) continue;
      for (const { name, devicePath } of node.status?.volumesAttached ?? [])
        if (driverOf(name) === driver) note(name, node.metadata.name ?? "", { device: devicePath, uncertain: false });
    }
  }

  async function find(name: string): Promise<FlexDriver> {
    const driver = await drivers.find(name);
    if (driver === undefined) throw new Error("no volume plugin matched");
    return driver;
  }

  const unlessNotSupported = (err: unknown): undefined => {
    if (!(err instanceof NotSupported)) throw err;
  };

  /** Calls `getvolumename` so that the driver can reject the volume. The returned name is not used. */
  async function checkName(driver: FlexDriver, volume: FlexVolume): Promise<void> {
    await driver.call("getvolumename", driverOptions(volume)).catch(unlessNotSupported);
  }

  async function isAttached(volume: FlexVolume, node: string): Promise<boolean> {
    try {
      const driver = await find(volume.driver);
      return (await driver.call("isattached", driverOptions(volume), node)).attached;
    } catch (err) {
      if (!(err instanceof NotSupported))
        log.error("cannot ask whether a volume is attached", err, { volume: volume.name, node });
      return true;
    }
  }

  /** Forgets volumes that their driver reports as not attached. */
  async function verifyEach(driver: string, some: readonly WantedAttachment[]): Promise<void> {
    if (verifying.has(driver)) return;
    verifying.add(driver);
    try {
      for (const { id, node, volume, before } of some)
        if (!(await isAttached(volume, node)) && attachments.get(id)?.get(node) === before) forget(id, node);
    } finally {
      verifying.delete(driver);
    }
  }

  function* attachedOf(wanted: WantedVolumes): Generator<WantedAttachment> {
    for (const id of wanted.ids()) {
      for (const [node, { volume }] of wanted.of(id)) {
        const before = attachments.get(id)?.get(node);
        if ("flex" in volume && before?.uncertain === false) yield { id, node, volume: volume.flex, before };
      }
    }
  }

  return {
    attaches(name) {
      if (!attaching.has(name)) void look(name);
      return attaching.has(name);
    },
    owns: (id) => attaching.has(driverOf(id) ?? ""),
    async scan() {
      for (const name of await drivers.names()) void look(name);
    },
    async attach(volume, node) {
      const id = pluginVolumeId(volume.driver, volume.name);
      try {
        const driver = await find(volume.driver);
        await checkName(driver, volume);
        const answer = await driver.call("attach", driverOptions(volume), node).catch(unlessNotSupported);
        note(id, node, { device: answer?.device ?? "", uncertain: false });
      } catch (err) {
        note(id, node, { device: "", uncertain: true });
        throw err;
      }
    },
    async detach(id, node) {
      const { plugin = "", name = "" } = parsePluginVolumeId(id) ?? {};
      const driver = await find(plugin);
      await driver.call("detach", name, node).catch(unlessNotSupported);
      forget(id, node);
    },
    async verify(wanted) {
      const byDriver = Map.groupBy(attachedOf(wanted), ({ volume }) => volume.driver);
      await Promise.all([...byDriver].map(([driver, some]) => verifyEach(driver, some)));
    },
    of: (id) =>
      [...(attachments.get(id) ?? [])].map(([node, { uncertain }]) => ({
        node,
        name: id,
        attached: !uncertain,
        uncertain,
        deleting: false,
        inUse: nodes.get(node)?.status?.volumesInUse?.includes(id) ?? false,
      })),
    onNode: (node) =>
      [...attachments].flatMap(([name, onNodes]) => {
        const attachment = onNodes.get(node);
        return attachment === undefined || attachment.uncertain ? [] : [{ name, devicePath: attachment.device }];
      }),
    attached: () => [...attachments].flatMap(([id, onNodes]) => [...onNodes.keys()].map(() => id)),
  };
}
