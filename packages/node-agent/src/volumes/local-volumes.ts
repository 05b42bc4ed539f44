import { lstat, readlink, realpath, stat, symlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { makeFolder } from "@coxswain/apimachinery/process/files/make-folder";
import type { NodePod } from "../pod/pod.ts";
import type { ContainerEvent } from "../runtime/containers.ts";
import { newSerial } from "./csi/serial.ts";
import { namesIn } from "./names-in.ts";

/** Which Pods use which folders of the node through local volumes. */
export interface LocalVolumes {
  /**
   * Notes that the Pod uses the folder. `first` runs unless the Pod did so before, or another Pod uses the folder: its owner
   * is set for the first Pod only. If `first` fails it is not repeated.
   * @param volume.dir the volume's place below the Pod's directory
   * Source: pkg/volume/local SetUpAt
   */
  use(pod: NodePod, volume: { dir: string; name: string; path: string }, first: (folder: string) => Promise<void>): Promise<void>;
}

/** Keeps the uses as links below the Pods' directories, so that they outlive the process, as upstream's mounts do. */
export function newLocalVolumes(options: { podsDir: string; reportPodEvent?: ContainerEvent }): LocalVolumes {
  const { podsDir, reportPodEvent } = options;
  const serial = newSerial();
  return {
    async use(pod, { dir, name, path }, first) {
      const folder = await realpath(path); // the path may be a link
      await serial(folder, async () => {
        if ((await lstat(dir).catch(() => undefined)) !== undefined) return;
        const isShared = await isUsed(folder, podsDir, basename(dirname(dir)));
        await makeFolder(dirname(dir), 0o750);
        await symlink(folder, dir);
        if (!isShared) return first(folder);
        const wanted = pod.spec.securityContext?.fsGroup;
        const { gid } = await stat(folder);
        if (wanted === undefined || wanted === gid) return;
        const problem = `The requested fsGroup is ${wanted}, but the volume ${name} has GID ${gid}. The volume may not be shareable.`;
        reportPodEvent?.(pod, undefined, "Warning", "AlreadyMountedVolume", problem);
      });
    },
  };
}

async function isUsed(folder: string, podsDir: string, plugin: string): Promise<boolean> {
  for (const uid of await namesIn(podsDir)) {
    const volumes = join(podsDir, uid, "volumes", plugin);
    for (const name of await namesIn(volumes)) {
      if ((await readlink(join(volumes, name)).catch(() => undefined)) === folder) return true;
    }
  }
  return false;
}
