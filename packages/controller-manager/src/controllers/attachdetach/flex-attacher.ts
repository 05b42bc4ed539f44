import { type FlexDriver, NotSupported, newFlexDrivers } from "@coxswain/apimachinery/flex-volumes/driver";
import { driverOptions, type FlexVolume } from "@coxswain/apimachinery/flex-volumes/volume";
import type { Lister } from "@coxswain/apimachinery/informers/lister";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import type { AttachedVolume, Node } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { parsePluginVolumeId, parseVolumeId, pluginVolumeId, type VolumeId } from "@coxswain/apimachinery/volumes/volume-id";
import type { Attached } from "./plan.ts";
import { isManaged } from "./wake.ts";
import type { WantedVolumes } from "./wanted.ts";

/** Flex volumes whose drivers attach: programs below a folder, which the controller runs itself. */
export interface FlexAttacher {
  /** Whether it is known that a driver is there and attaches. One that is not known is looked for. */
  attaches(driver: string): boolean;
  /** Whether it is for one of these drivers to say what becomes of a volume. */
  owns(id: VolumeId): boolean;
  /** Begins to look for drivers that have come since. */
  scan(): Promise<void>;
  /** @throws Error in the driver's words; then nobody knows whether it is attached */
  attach(volume: FlexVolume, node: string): Promise<void>;
  /** @throws Error in the driver's words */
  detach(id: VolumeId, node: string): Promise<void>;
  /** Asks the drivers whether what they attached is there still. One that hangs is not asked anew, and keeps no other waiting. */
  verify(wanted: WantedVolumes): Promise<void>;
  of(id: VolumeId): Attached[];
  /** As the node's status lists it. */
  onNode(node: string): AttachedVolume[];
  /** One for each node that a volume is attached to. */
  attached(): VolumeId[];
}

export interface FlexAttacherOptions {
  /** `--flex-volume-plugin-dir` */
  readonly pluginDir: string;
  readonly nodes: Lister<Node>;
  readonly log: Logger;
  /** A volume, and what its node may use of it, is to be looked at. */
  readonly onChange: (id: VolumeId, node: string) => void;
  /** A driver has come: volumes that nobody attached until now may be its. */
  readonly onDriver: () => void;
}

interface Attachment {
  readonly device: string;
  /** It may be attached, and may not. */
  readonly uncertain: boolean;
}

/** What a Pod needs, and is attached as far as is known. */
interface WantedAttachment {
  readonly id: VolumeId;
  readonly node: string;
  readonly volume: FlexVolume;
  readonly before: Attachment;
}

/**
 * What is attached where is remembered here, and read from the nodes' own lists when a driver is first seen.
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

  /** What was attached before this process began. */
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

  /** The driver may refuse a volume when it is asked for its name; the name itself is always the volume's own. */
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

  /** What its driver says is not attached any more, is forgotten. */
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
