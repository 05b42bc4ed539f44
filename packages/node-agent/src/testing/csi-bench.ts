import assert from "node:assert/strict";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { EventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import { newFeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import type { Node, PersistentVolume, PersistentVolumeClaim } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { nodes, volumeAttachments } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { CSIDriver, CSIDriverSpec, VolumeAttachment } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { PluginRegistry } from "../plugins/plugin-registry.ts";
import type { NodePod } from "../pod/pod.ts";
import type { PodObjects } from "../pod/pod-objects.ts";
import { noObjects } from "../sources/api-objects.ts";
import { type Csi, newCsi } from "../volumes/csi/csi.ts";
import { systemMounter } from "../volumes/mount.ts";
import type { SetUpVolume } from "../volumes/volume.ts";
import { aNodePod } from "./builders.ts";
import { startCsiDriver, type TestDriver, type TestDriverOptions } from "./csi-driver.ts";

export const driverName = "disk.example.com";
export const isRoot = process.getuid?.() === 0;
export const volumeId = `kubernetes.io/csi/${driverName}^handle-1`;

const objects: PodObjects = {
  ...noObjects,
  secret: async (namespace, name) => {
    if (name === "missing") return noObjects.secret(namespace, name);
    return { metadata: { name }, data: { key: Buffer.from(`${namespace}/${name}`).toString("base64") } };
  },
  serviceAccountToken: async ({ serviceAccount, audience }) => ({
    token: `${serviceAccount} for ${audience}`,
    expirationTimestamp: "2030-01-01T00:00:00Z",
  }),
};

/** Longer than the maximum back-off of the plugin registry. */
const longestRetryMs = 122_001;

interface CsiBenchOptions extends Partial<TestDriverOptions> {
  readonly controllerAttaches?: boolean;
  readonly gates?: Readonly<Record<string, boolean>>;
}

/** A node with one registered driver, a fake API server and real mounts. */
export async function csiBench(t: { after(fn: () => Promise<void>): void }, options: CsiBenchOptions = {}): Promise<CsiBench> {
  const bench = new CsiBench(await realpath(await mkdtemp(join(tmpdir(), "cox-csi-"))), options);
  t.after(() => bench.remove());
  await bench.startDriver();
  return bench;
}

/** The node of `csiBench`; starts and stops drivers, and mounts below `dir`. Needs root. */
export class CsiBench {
  readonly dir: string;
  readonly events: string[] = [];
  /** Observed operations: plugin, operation, result. */
  readonly operations: string[] = [];
  readonly clock = newFakeClock();
  readonly client = newFakeClient({ clock: this.clock });
  csi: Csi;
  /** False: the agent has not read the CSIDrivers yet. */
  hasDrivers = true;
  readonly #options: CsiBenchOptions;
  /** A separate clock, so that registration retries do not advance the volumes' time. */
  readonly #registryClock = newFakeClock();
  #registry: PluginRegistry;
  #driver: TestDriver | undefined;
  #described: CSIDriver | undefined;

  constructor(dir: string, options: CsiBenchOptions) {
    this.dir = dir;
    this.#options = options;
    this.client.put(nodes, {
      apiVersion: "v1",
      kind: "Node",
      metadata: { name: "n1", uid: "node-uid" },
      spec: {},
      status: {},
    });
    this.csi = this.#newAgent();
    this.#registry = this.#newRegistry();
  }

  get driver(): TestDriver {
    if (this.#driver === undefined) throw new Error("the driver is not started");
    return this.#driver;
  }

  /** Sets the spec of the CSIDriver object; undefined deletes it. */
  describe(spec: Partial<CSIDriverSpec> | undefined): void {
    const written = { volumeLifecycleModes: ["Persistent", "Ephemeral"], ...spec } as CSIDriverSpec;
    this.#described = spec && {
      apiVersion: "storage.k8s.io/v1",
      kind: "CSIDriver",
      metadata: { name: driverName },
      spec: written,
    };
  }

  /** Acts as the attach/detach controller: updates VolumeAttachment and node status. */
  attach(): void {
    const node = this.client.object<Node>(nodes, "n1") as Node;
    const volumesAttached = [{ name: volumeId, devicePath: "" }];
    this.client.put(nodes, { ...node, status: { ...node.status, volumesAttached } });
    this.client.put<VolumeAttachment>(volumeAttachments, {
      apiVersion: "storage.k8s.io/v1",
      kind: "VolumeAttachment",
      metadata: { name: "csi-8e88a5c2f5eaf45a4d0a1e8ebb0a3de6cb8b7b7ee19d0b42e1b1a6ba22d8fe0a" },
      spec: { attacher: driverName, nodeName: "n1", source: { persistentVolumeName: "pv1" } },
      status: { attached: true, attachmentMetadata: { lun: "7" } },
    });
  }

  async startDriver(more: Partial<TestDriverOptions> = {}): Promise<TestDriver> {
    await this.#driver?.stop();
    const dirs = { registryDir: this.#registryDir, dir: join(this.dir, "driver") };
    this.#driver = await startCsiDriver({ name: driverName, ...dirs, ...this.#options, ...more });
    await this.#register();
    return this.#driver;
  }

  /** A restarted agent on the same disk. */
  async restart(): Promise<Csi> {
    this.csi.close();
    this.csi = this.#newAgent();
    this.#registry = this.#newRegistry();
    await this.csi.restore();
    this.#driver?.verdicts.splice(0);
    await this.#register();
    return this.csi;
  }

  async mounts(): Promise<string[]> {
    return (await systemMounter.mountsBelow(this.dir)).map((path) => path.slice(this.dir.length + 1)).toSorted();
  }

  async remove(): Promise<void> {
    this.csi.close();
    await this.#driver?.stop();
    for (const path of await systemMounter.mountsBelow(this.dir)) await systemMounter.unmount(path);
    await rm(this.dir, { recursive: true, force: true });
  }

  get #registryDir(): string {
    return join(this.dir, "plugins_registry");
  }

  #newRegistry(): PluginRegistry {
    const handlers = { CSIPlugin: this.csi.handler };
    return new PluginRegistry({ dir: this.#registryDir, handlers, clock: this.#registryClock, log: discardLogger });
  }

  async #register(): Promise<void> {
    // The registration has a real timeout of one second; on a loaded machine it may need several attempts.
    const answered = async (): Promise<number | undefined> => {
      await this.#registry.reconcile();
      await this.#registryClock.advance(longestRetryMs);
      return this.#driver?.verdicts.length;
    };
    await waitFor(answered, { what: "the agent to answer the registration" });
  }

  #newAgent(): Csi {
    const { dir, client, clock, events, operations } = this;
    const { controllerAttaches = true, gates = {} } = this.#options;
    const hasDrivers = () => this.hasDrivers;
    const csiDrivers = {
      get synced() {
        return hasDrivers();
      },
      lister: { get: () => this.#described },
    };
    return newCsi({
      client,
      csiDrivers: csiDrivers as unknown as Parameters<typeof newCsi>[0]["csiDrivers"],
      recorder: {
        event: (ref: { kind: string }, _: string, reason: string) => void events.push(`${ref.kind} ${reason}`),
      } as unknown as EventRecorder,
      reportPodEvent: (_pod, _container, _type, reason, message) => void events.push(`${reason}: ${message}`),
      node: () => client.object<Node>(nodes, "n1"),
      nodeName: "n1",
      rootDir: dir,
      podsDir: join(dir, "pods"),
      controllerAttaches,
      featureGates: newFeatureGates("kubelet", gates),
      objects,
      mounter: systemMounter,
      clock,
      log: discardLogger,
      operations: (plugin, operation) => (failure) =>
        void operations.push(`${plugin} ${operation} ${failure === undefined ? "succeeded" : "failed"}`),
      onChange: () => {
        const node = client.object<Node>(nodes, "n1") as Node;
        client.put(nodes, { ...node, status: { ...node.status, volumesInUse: [...(this.csi.inUse() ?? [])] } });
      },
    });
  }
}

export function aVolume(csi: Partial<NonNullable<PersistentVolume["spec"]["csi"]>> = {}): PersistentVolume {
  return {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: { name: "pv1" },
    spec: {
      accessModes: ["ReadWriteOnce"],
      capacity: { storage: "2Gi" },
      csi: { driver: driverName, volumeHandle: "handle-1", ...csi },
    },
  };
}

export const aClaim = (capacity = "2Gi"): PersistentVolumeClaim => ({
  apiVersion: "v1",
  kind: "PersistentVolumeClaim",
  metadata: { name: "data", namespace: "default", uid: "claim-uid" },
  spec: { volumeName: "pv1" },
  status: { phase: "Bound", capacity: { storage: capacity } },
});

export const mountIn = (uid: string): string => `pods/${uid}/volumes/kubernetes.io~csi/pv1/mount`;
export const globalMount = "plugins/kubernetes.io/csi/pv/pv1/globalmount";

/** Sets up a volume of `pod`, with a bound claim. */
export async function up({ csi }: { csi: Csi }, pod: NodePod = aNodePod(), volume = aVolume()): Promise<SetUpVolume> {
  const made = await csi.persistent(pod, volume, aClaim(), false);
  assert.ok(made);
  return made;
}
