import { lstat } from "node:fs/promises";
import { join } from "node:path";
import { namesIn, namesNow } from "../names-in.ts";

/**
 * Directories of CSI volumes of one kind. Drivers and other tools rely on these paths. The directories named `data` contain
 * `vol_data.json`.
 */
export interface VolumeLayout {
  /** The Pod's volume: a directory, or a symbolic link to a device. Exists while the Pod has the volume. */
  ofPod(uid: string, name: string): string;
  /** Target path of NodePublishVolume. */
  target(uid: string, name: string): string;
  dataOfPod(uid: string, name: string): string;
  /** Staging path of NodeStageVolume. */
  staging(name: string): string;
  data(name: string): string;
  /** Directories that remain after a volume was unstaged; removed when empty. */
  rest(name: string): readonly string[];
  /** Names of a Pod's volumes. */
  podVolumes(uid: string): Promise<string[]>;
  /** Names of persistent volumes with staging data on disk. */
  names(): Promise<string[]>;
  /** UIDs of the Pods that have the volume. */
  usersOf(name: string): Promise<string[]>;
}

/** Directories of CSI volumes on this node. */
export interface CsiPaths {
  layouts: Readonly<Record<"mount" | "block", VolumeLayout>>;
  /** UIDs of all Pods with a directory. */
  pods(): Promise<string[]>;
}

const pluginName = "kubernetes.io~csi";

/**
 * @param pluginsDir `<root-dir>/plugins`
 * Source: pkg/volume/csi csi_attacher.go, csi_mounter.go, csi_block.go
 */
export function newCsiPaths({ podsDir, pluginsDir }: { podsDir: string; pluginsDir: string }): CsiPaths {
  const pods = (): Promise<string[]> => namesIn(podsDir);
  const volumes = (uid: string): string => join(podsDir, uid, "volumes", pluginName);
  const devices = (uid: string): string => join(podsDir, uid, "volumeDevices", pluginName);
  const staged = join(pluginsDir, "kubernetes.io/csi/pv");
  const mapped = join(pluginsDir, "kubernetes.io/csi/volumeDevices");
  const usersOf =
    (ofPod: VolumeLayout["ofPod"]) =>
    async (name: string): Promise<string[]> => {
      const users: string[] = [];
      for (const uid of await pods()) if (await exists(ofPod(uid, name))) users.push(uid);
      return users;
    };

  const ofMount = (uid: string, name: string): string => join(volumes(uid), name);
  const mount: VolumeLayout = {
    ofPod: ofMount,
    target: (uid, name) => join(ofMount(uid, name), "mount"),
    dataOfPod: ofMount,
    staging: (name) => join(staged, name, "globalmount"),
    data: (name) => join(staged, name),
    rest: () => [],
    podVolumes: (uid) => namesIn(volumes(uid)),
    names: async () => namesNow(staged),
    usersOf: usersOf(ofMount),
  };
  const ofBlock = (uid: string, name: string): string => join(devices(uid), name);
  const blockData = (name: string): string => join(mapped, name, "data");
  const block: VolumeLayout = {
    ofPod: ofBlock,
    target: (uid, name) => join(mapped, "publish", name, uid),
    dataOfPod: (_, name) => blockData(name),
    staging: (name) => join(mapped, "staging", name),
    data: blockData,
    rest: (name) => [join(mapped, "publish", name), join(mapped, name)],
    podVolumes: (uid) => namesIn(devices(uid)),
    names: async () => namesNow(mapped).filter((name) => name !== "publish" && name !== "staging"),
    usersOf: usersOf(ofBlock),
  };
  return { layouts: { mount, block }, pods };
}

/** Also true for dangling symbolic links. */
export async function exists(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => undefined)) !== undefined;
}
