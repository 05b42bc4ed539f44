import { readdir, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { encodeUntyped } from "@coxswain/apimachinery/codec/json";
import { makeFolder } from "@coxswain/apimachinery/files/make-folder";
import type {
  FlexPersistentVolumeSource,
  FlexVolumeSource,
  PersistentVolume,
  Volume,
} from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { NodePod } from "../../pods/pod.ts";
import type { PodObjects } from "../../sources/pod-objects.ts";
import { filesystemSize } from "../measure.ts";
import type { Mounter } from "../mount.ts";
import { setVolumeOwnership } from "../ownership.ts";
import { type SetUpVolume, VolumeError } from "../volume.ts";
import { type FlexDriver, NotSupported, newFlexDrivers } from "./flex-driver.ts";

/** Volumes that a third party's program mounts. */
export interface FlexVolumes {
  /** @returns undefined for what is no flex volume, and for one whose driver is not there */
  inline(pod: NodePod, volume: Volume): Promise<SetUpVolume | undefined>;
  persistent(pod: NodePod, volume: PersistentVolume, readOnly: boolean): Promise<SetUpVolume | undefined>;
  /** Has the drivers take away what they mounted of a Pod, whoever started them. */
  tearDown(uid: string): Promise<void>;
}

export interface FlexOptions {
  /** `--volume-plugin-dir` */
  readonly pluginDir: string;
  readonly podsDir: string;
  readonly objects: PodObjects;
  readonly mounter: Mounter;
}

/** One volume, inline or persistent. */
interface Source {
  readonly flex: FlexVolumeSource | FlexPersistentVolumeSource;
  readonly name: string;
  readonly readOnly: boolean;
  readonly secretNamespace: string;
}

/**
 * Flex volumes of drivers that have nothing to attach; a driver that attaches says so by default, and is refused.
 * Source: pkg/volume/flexvolume mounter.go, unmounter.go
 */
export function newFlexVolumes({ pluginDir, podsDir, objects, mounter }: FlexOptions): FlexVolumes {
  const drivers = newFlexDrivers(pluginDir);
  const isMounted = async (dir: string): Promise<boolean> => (await mounter.mountsBelow(dir)).includes(dir);

  async function setUp(pod: NodePod, source: Source): Promise<SetUpVolume | undefined> {
    const { flex, name, readOnly } = source;
    const driver = await drivers.find(flex.driver);
    if (driver === undefined) return undefined;
    try {
      const dir = join(podsDir, pod.metadata.uid, "volumes", flex.driver.replaceAll("/", "~"), partOfPath(name));
      if (driver.capabilities.attach)
        throw new Error(
          `the flex volume driver ${flex.driver} attaches volumes, which is not built: only capabilities attach:false`,
        );
      if (!(await isMounted(dir))) await mount(driver, pod, source, dir);
      return { path: dir, readOnly, ...(driver.capabilities.supportsMetrics && { measure: () => filesystemSize(dir) }) };
    } catch (err) {
      throw new VolumeError("MountVolume.SetUp failed", name, err);
    }
  }

  async function mount(driver: FlexDriver, pod: NodePod, source: Source, dir: string): Promise<void> {
    await makeFolder(dir, 0o750);
    try {
      await driver.call("mount", dir, encodeUntyped(await optionsOf(pod, source)).toString());
    } catch (err) {
      await rmdir(dir).catch(() => {});
      throw err;
    }
    if (!source.readOnly && driver.capabilities.fsGroup) await setVolumeOwnership(dir, pod, { readOnly: false, policy: true });
  }

  /** What a driver is told of a volume; options of the volume win over all else. */
  async function optionsOf(pod: NodePod, source: Source): Promise<Record<string, string>> {
    const { fsGroup } = pod.spec.securityContext ?? {};
    const options = {
      "kubernetes.io/fsType": source.flex.fsType ?? "",
      "kubernetes.io/readwrite": source.readOnly ? "ro" : "rw",
      "kubernetes.io/pvOrVolumeName": source.name,
      "kubernetes.io/pod.name": pod.metadata.name,
      "kubernetes.io/pod.namespace": pod.metadata.namespace,
      "kubernetes.io/pod.uid": pod.metadata.uid,
      "kubernetes.io/serviceAccount.name": pod.spec.serviceAccountName ?? "",
      ...(await secretOptions(source)),
      ...(fsGroup !== undefined && { "kubernetes.io/mounterArgs.FsGroup": String(fsGroup) }),
    };
    return Object.fromEntries([...Object.entries(options), ...Object.entries(source.flex.options ?? {})]);
  }

  async function secretOptions({ flex, secretNamespace }: Source): Promise<Record<string, string>> {
    const { name = "" } = flex.secretRef ?? {};
    if (name === "" || secretNamespace === "") return {};
    try {
      const secret = await objects.secret(secretNamespace, name);
      if (secret?.type !== flex.driver) throw new Error(`cannot get secret of type ${flex.driver}`);
      return Object.fromEntries(Object.entries(secret.data ?? {}).map(([key, data]) => [`kubernetes.io/secret/${key}`, data]));
    } catch (err) {
      throw new Error(`couldn't get secret ${secretNamespace}/${name} err: ${(err as Error).message}`, { cause: err });
    }
  }

  async function takeAway(driver: FlexDriver, dir: string): Promise<void> {
    try {
      await driver.call("unmount", dir);
    } catch (err) {
      if (!(err instanceof NotSupported)) throw err;
      if (await isMounted(dir)) await mounter.unmount(dir);
    }
    await rmdir(dir).catch((err) => {
      if (err.code !== "ENOENT") throw err; // the driver may have removed it
    });
  }

  return {
    async inline(pod, { name, flexVolume }) {
      if (flexVolume === undefined) return undefined;
      const { readOnly = false } = flexVolume;
      return setUp(pod, { flex: flexVolume, name, readOnly, secretNamespace: pod.metadata.namespace });
    },
    async persistent(pod, { metadata, spec }, readOnly) {
      if (spec.flexVolume === undefined) return undefined;
      const secretNamespace = spec.flexVolume.secretRef?.namespace || pod.metadata.namespace;
      return setUp(pod, { flex: spec.flexVolume, name: metadata.name ?? "", readOnly, secretNamespace });
    },
    async tearDown(uid) {
      const volumesDir = join(podsDir, uid, "volumes");
      for (const folder of await namesIn(volumesDir)) {
        const driver = folder.startsWith("kubernetes.io~") ? undefined : await drivers.find(folder.replaceAll("~", "/"));
        if (driver === undefined) continue;
        for (const name of await namesIn(join(volumesDir, folder))) await takeAway(driver, join(volumesDir, folder, name));
      }
    },
  };
}

async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => []);
}

/** Files and URLs that Pods come from are not validated by an API server. */
function partOfPath(name: string): string {
  if (name === "" || name === "." || name === ".." || /[/\0]/.test(name))
    throw new Error(`${JSON.stringify(name)} cannot be the name of a folder`);
  return name;
}
