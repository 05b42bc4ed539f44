import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";

/** Where the folders of CSI volumes are; drivers and other tools rely on them. Source: pkg/volume/csi */
export interface CsiPaths {
  /** Of a Pod's volume: its `vol_data.json`, and `mount`. */
  podVolume(uid: string, name: string): string;
  /** Names of a Pod's volumes. */
  podVolumes(uid: string): Promise<string[]>;
  /** Of a persistent volume: its `vol_data.json`, and `globalmount`. */
  device(name: string): string;
  /** Names of persistent volumes that have such a folder. */
  devices(): Promise<string[]>;
  /** Pods that have a folder of the volume. */
  usersOf(name: string): Promise<string[]>;
  /** Every Pod that has a folder here. */
  pods(): Promise<string[]>;
}

export const mountName = "mount";
export const globalMountName = "globalmount";

/** @param pluginsDir `<root-dir>/plugins` */
export function newCsiPaths({ podsDir, pluginsDir }: { podsDir: string; pluginsDir: string }): CsiPaths {
  const podVolumesDir = (uid: string): string => join(podsDir, uid, "volumes", "kubernetes.io~csi");
  const devicesDir = join(pluginsDir, "kubernetes.io/csi/pv");
  const podVolume = (uid: string, name: string): string => join(podVolumesDir(uid), name);
  const pods = (): Promise<string[]> => namesIn(podsDir);
  return {
    podVolume,
    podVolumes: (uid) => namesIn(podVolumesDir(uid)),
    device: (name) => join(devicesDir, name),
    devices: () => namesIn(devicesDir),
    pods,
    async usersOf(name) {
      const users: string[] = [];
      for (const uid of await pods()) if (await exists(podVolume(uid, name))) users.push(uid);
      return users;
    },
  };
}

export async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined;
}

const namesIn = (dir: string): Promise<string[]> =>
  readdir(dir).catch((err: NodeJS.ErrnoException) => {
    if (err.code === "ENOENT") return [];
    throw err;
  });
