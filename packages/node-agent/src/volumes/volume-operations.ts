import type { PersistentVolumeSource, Volume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { isKeyOf } from "@coxswain/apimachinery/process/narrowing/keys";
import { migratedPlugins } from "@coxswain/apimachinery/volumes/migration";
import { type BeginOperation, observed } from "@coxswain/apimachinery/volumes/storage-operations";
import definitions from "../metrics.json" with { type: "json" };
import { VolumeWaits } from "./volume.ts";

export interface VolumeOfPod {
  readonly uid: string;
  /** Name in the Pod's spec. */
  readonly name: string;
  readonly kind: "mount" | "block";
  /** The result of `pluginOf`. */
  readonly plugin: string;
  /** True when `setUp` also refreshes the contents of a mounted volume. */
  readonly isRefreshed: boolean;
}

/** Tracks wanted and mounted volumes, and observes the operations on them for metrics. */
export interface VolumeOperations {
  setUp<T>(volume: VolumeOfPod, work: () => Promise<T>): Promise<T>;
  /** Wraps the teardown of all volumes of a Pod. */
  tearDown(uid: string, work: () => Promise<void>): Promise<void>;
  /** Observes a partial operation. */
  readonly begin: BeginOperation;
  /** One entry per volume and state, with the labels of `volume_manager_total_volumes`. */
  states(): Iterable<readonly [plugin: string, state: string]>;
}

interface Entry extends Pick<VolumeOfPod, "kind" | "plugin"> {
  isThere: boolean;
  isWanted: boolean;
}

const names = {
  mount: { setUp: "volume_mount", tearDown: "volume_unmount" },
  block: { setUp: "map_volume", tearDown: "unmap_volume" },
} as const;

/**
 * Returns an empty record of operations. @param begin starts the measurement of one operation
 * Source: pkg/volume/util/operationexecutor operation_generator.go; pkg/kubelet/volumemanager/metrics
 */
export function newVolumeOperations(begin: BeginOperation): VolumeOperations {
  const pods = new Map<string, Map<string, Entry>>();
  return {
    begin,
    async setUp({ uid, name, kind, plugin, isRefreshed }, work) {
      const entries = pods.getOrInsertComputed(uid, () => new Map<string, Entry>());
      const entry = entries.getOrInsertComputed(name, () => ({ kind, plugin, isThere: false, isWanted: true }));
      if (entry.isThere && !isRefreshed) return work();
      const end = begin(plugin, names[kind].setUp);
      try {
        const made = await work();
        end();
        entry.isThere = true;
        return made;
      } catch (err) {
        if (!(err instanceof VolumeWaits)) end(err);
        throw err;
      }
    },
    async tearDown(uid, work) {
      const entries = [...(pods.get(uid)?.values() ?? [])];
      for (const entry of entries) entry.isWanted = false;
      const there = entries.filter(({ isThere }) => isThere);
      const ends = there.map(({ plugin, kind }) => begin(plugin, names[kind].tearDown));
      await observed((failure) => {
        for (const end of ends) end(failure);
      }, work);
      pods.delete(uid);
    },
    *states() {
      for (const entries of pods.values()) {
        for (const { plugin, isThere, isWanted } of entries.values()) {
          if (isWanted) yield [plugin, "desired_state_of_world"];
          if (isThere) yield [plugin, "actual_state_of_world"];
        }
      }
    },
  };
}

/** Registers `volume_manager_total_volumes`, computed on collection. */
export function countVolumes(registry: MetricsRegistry, operations: Pick<VolumeOperations, "states">): void {
  registry.gauge({
    ...definitions.volume_manager_total_volumes,
    collect(gauge) {
      gauge.reset();
      for (const [plugin, state] of operations.states()) gauge.labels(plugin, state).inc();
    },
  });
}

/** Volume source field → in-tree plugin name. */
const plugins = {
  emptyDir: "kubernetes.io/empty-dir",
  hostPath: "kubernetes.io/host-path",
  gitRepo: "kubernetes.io/git-repo",
  configMap: "kubernetes.io/configmap",
  secret: "kubernetes.io/secret",
  projected: "kubernetes.io/projected",
  downwardAPI: "kubernetes.io/downward-api",
  local: "kubernetes.io/local-volume",
} as const satisfies { readonly [field in keyof Volume | keyof PersistentVolumeSource]?: string };

/**
 * The plugin name of a volume in metrics; a volume without source is an emptyDir.
 * Source: pkg/volume/util/metrics.go GetFullQualifiedPluginNameForVolume
 */
export function pluginOf(source: Omit<Volume, "name"> | PersistentVolumeSource): string {
  if (source.csi !== undefined) return csiPlugin(source.csi.driver);
  if (source.flexVolume !== undefined) return source.flexVolume.driver;
  const migrated = migratedPlugins.find((known) => source[known.source] !== undefined);
  if (migrated !== undefined) return csiPlugin(migrated.driver);
  for (const [field, value] of Object.entries(source)) if (value !== undefined && isKeyOf(plugins, field)) return plugins[field];
  return plugins.emptyDir;
}

/** The plugin name of a CSI driver in metrics. */
export function csiPlugin(driver: string): string {
  return `kubernetes.io/csi:${driver}`;
}
