import type { Client } from "@coxswain/apimachinery/client/client";
import { joinedFailures } from "@coxswain/apimachinery/objects/errors/joined-failures";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { csiNodes, nodes } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { CSINode, CSINodeDriver } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { migratedPluginsAnnotation } from "@coxswain/apimachinery/volumes/migration";
import type { CsiClient } from "./csi-client.ts";
import type { DriverAnnouncer } from "./csi-drivers.ts";
import { newSerial } from "./serial.ts";

const nodeIdAnnotation = "csi.volume.kubernetes.io/nodeid";
const maxInt32 = 2 ** 31 - 1;
/** Delays between attempts of one update. */
const retriesMs = [10, 50, 250];
const firstRetryMs = 100;
const maxRetryMs = 5_000;

interface CsiNodeInfoOptions {
  client: Client;
  nodeName: string;
  /** Names of in-tree plugins that are migrated to CSI. */
  migratedPlugins: readonly string[];
  clock: Clock;
  log: Logger;
  onChange: () => void;
}

/**
 * Publishes this node's CSI drivers: the CSINode object, and node IDs and topology labels on the Node.
 * Source: pkg/volume/csi/nodeinfomanager
 */
export class CsiNodeInfo implements DriverAnnouncer {
  readonly #options: CsiNodeInfoOptions;
  readonly #name: { name: string };
  /** The IDs of all drivers are one annotation: of two drivers that are written at a time, one would be lost. */
  readonly #serial = newSerial();
  #problem: string | undefined = "CSINode is not yet initialized";

  constructor(options: CsiNodeInfoOptions) {
    this.#options = options;
    const { nodeName } = options;
    this.#name = { name: nodeName };
  }

  /** The reason why the node is not ready, if any. */
  problem(): string | undefined {
    return this.#problem;
  }

  /** Creates this node's CSINode; resolves when it exists, or when the signal aborts. */
  async initialize(signal: AbortSignal): Promise<void> {
    const { client, log, clock } = this.#options;
    for (let retryMs = firstRetryMs; !signal.aborted; retryMs = Math.min(retryMs * 2, maxRetryMs)) {
      try {
        const current = await this.#csiNode();
        const annotations = this.#migrated(current.metadata.annotations ?? {});
        if (!semanticEqual(annotations, current.metadata.annotations ?? {})) {
          await client.update<CSINode>(csiNodes, { ...current, metadata: { ...current.metadata, annotations } });
        }
        return this.#say(undefined);
      } catch (err) {
        // NotFound: the Node is not registered yet, and CSINode needs it as owner.
        if (!isNotFound(err)) this.#say(`Failed to initialize CSINode: ${messageOf(err)}`);
        log.v(4)?.info("CSINode cannot be initialized yet", { reason: messageOf(err) });
        await clock.sleep(retryMs, signal).catch(() => undefined);
      }
    }
  }

  async install(
    driver: string,
    { nodeId, maxVolumes, topology }: { nodeId: string; maxVolumes: number; topology: Readonly<Record<string, string>> },
  ): Promise<void> {
    if (nodeId === "") throw new Error("error adding CSI driver node info: driverNodeID must not be empty");
    const adding = "object with CSI driver node info:";
    await this.#setNode((ids, node) => nodeChange(ids, node, driver, nodeId, topology)).catch((err: Error) => {
      throw new Error(`error updating Node ${adding} ${err.message}`);
    });
    await this.#setDrivers((drivers) => [
      ...drivers.filter((one) => one.name !== driver),
      describeDriver(driver, { nodeId, maxVolumes, topology }),
    ]).catch((err: Error) => {
      throw new Error(`error updating CSINode ${adding} ${err.message}`);
    });
  }

  /** Removes the driver from the CSINode and the node's annotations. @throws Error when a write fails */
  async uninstall(driver: string): Promise<void> {
    await this.#setDrivers((drivers) => drivers.filter((one) => one.name !== driver)).catch((err: Error) => {
      throw new Error(`error uninstalling CSI driver from CSINode object ${err.message}`);
    });
    await this.#setNode((ids) => {
      if (!Object.hasOwn(ids, driver)) return undefined;
      const { [driver]: _, ...others } = ids;
      return { annotations: { [nodeIdAnnotation]: Object.keys(others).length === 0 ? null : JSON.stringify(others) } };
    }).catch((err: Error) => {
      throw new Error(`error removing CSI driver node info from Node object ${err.message}`);
    });
  }

  #say(next: string | undefined): void {
    if (next === this.#problem) return;
    this.#problem = next;
    this.#options.onChange();
  }

  /** Runs one read-modify-write of an object at a time, and retries it a few times. @throws Error with all failures */
  #persist(what: string, change: () => Promise<void>): Promise<void> {
    return this.#serial(what, () => this.#tries(what, change));
  }

  async #tries(what: string, change: () => Promise<void>): Promise<void> {
    const { clock } = this.#options;
    const failures: string[] = [];
    for (const waitMs of [...retriesMs, undefined]) {
      try {
        return await change();
      } catch (err) {
        failures.push(messageOf(err));
        if (waitMs !== undefined) await clock.sleep(waitMs);
      }
    }
    throw new Error(`error updating ${what}: timed out waiting for the condition; caused by: ${joinedFailures(failures)}`);
  }

  async #csiNode(): Promise<CSINode> {
    const { client, nodeName } = this.#options;
    try {
      return await client.get<CSINode>(csiNodes, this.#name);
    } catch (err) {
      if (!isNotFound(err)) throw err;
    }
    const node = await client.get<Node>(nodes, this.#name);
    const owner = { apiVersion: "v1", kind: "Node", name: nodeName, uid: node.metadata.uid ?? "" };
    const made: CSINode = {
      apiVersion: "storage.k8s.io/v1",
      kind: "CSINode",
      metadata: { name: nodeName, ownerReferences: [owner], annotations: this.#migrated({}) },
      spec: { drivers: [] },
    };
    return client.create<CSINode>(csiNodes, made);
  }

  #migrated(annotations: Readonly<Record<string, string>>): Record<string, string> {
    const { [migratedPluginsAnnotation]: _, ...others } = annotations;
    const plugins = this.#options.migratedPlugins.toSorted().join(",");
    return plugins === "" ? others : { ...others, [migratedPluginsAnnotation]: plugins };
  }

  #setDrivers(change: (drivers: readonly CSINodeDriver[]) => CSINodeDriver[]): Promise<void> {
    const { client } = this.#options;
    return this.#persist("CSINode", async () => {
      const current = await this.#csiNode();
      const before = current.spec.drivers ?? [];
      const drivers = change(before);
      if (!semanticEqual(before, drivers)) await client.update<CSINode>(csiNodes, { ...current, spec: { drivers } });
    });
  }

  /** @param change gets node IDs by driver; returns the metadata to patch, undefined for no change */
  #setNode(change: (ids: Readonly<Record<string, string>>, node: Node) => object | undefined): Promise<void> {
    const { client } = this.#options;
    return this.#persist("node", async () => {
      const node = await client.get<Node>(nodes, this.#name);
      const metadata = change(nodeIds(node), node);
      if (metadata === undefined) return;
      // Upstream, too, patches metadata through nodes/status.
      await client.patch<Node>(nodes, { ...this.#name, subresource: "status" }, { type: "merge", body: { metadata } });
    });
  }
}

/** Pure: the CSINode entry of a driver. */
function describeDriver(name: string, info: Awaited<ReturnType<CsiClient["info"]>>): CSINodeDriver {
  return {
    name,
    nodeID: info.nodeId,
    topologyKeys: Object.keys(info.topology).toSorted(),
    ...(info.maxVolumes > 0 && { allocatable: { count: Math.min(info.maxVolumes, maxInt32) } }),
  };
}

function nodeIds(node: Node): Readonly<Record<string, string>> {
  const text = node.metadata.annotations?.[nodeIdAnnotation] ?? "";
  if (text === "") return {};
  try {
    return JSON.parse(text) as Record<string, string>; // cast: kubelets write it, each its own drivers
  } catch (err) {
    throw new Error(
      `failed to parse node's ${JSON.stringify(nodeIdAnnotation)} annotation value (${JSON.stringify(text)}) err=${messageOf(err)}`,
    );
  }
}

/**
 * The metadata patch that adds a driver; undefined when nothing changes.
 * @throws Error when a topology label exists with another value
 */
function nodeChange(
  ids: Readonly<Record<string, string>>,
  node: Node,
  driver: string,
  nodeId: string,
  topology: Readonly<Record<string, string>>,
): object | undefined {
  const labels = node.metadata.labels ?? {};
  for (const [key, value] of Object.entries(topology)) {
    const current = Object.hasOwn(labels, key) ? labels[key] : undefined;
    if (current === undefined || current === value) continue;
    const q = JSON.stringify;
    throw new Error(
      `detected topology value collision: driver reported ${q(key)}:${q(value)} but existing label is ${q(key)}:${q(current)}`,
    );
  }
  const known = Object.hasOwn(ids, driver) && ids[driver] === nodeId;
  if (known && Object.keys(topology).every((key) => Object.hasOwn(labels, key))) return undefined;
  // Sorted like Go's encoding of a map.
  const next = Object.fromEntries([...Object.entries(ids), [driver, nodeId] as const].toSorted(([a], [b]) => (a < b ? -1 : 1)));
  return { annotations: { [nodeIdAnnotation]: JSON.stringify(next) }, labels: topology };
}
