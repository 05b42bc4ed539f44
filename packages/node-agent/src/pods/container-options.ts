import { randomBytes } from "node:crypto";
import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { makeFolder } from "@coxswain/apimachinery/process/files/make-folder";
import { expand } from "../environment/expansion.ts";
import { writeHostsFile } from "../environment/hostname.ts";
import type { AnyContainer, NodePod } from "../pod/pod.ts";
import type { CriInput } from "../runtime/cri-schema.ts";
import type { Mounter } from "../volumes/mount.ts";
import { bindSubPath, checkSubPath, makeSubPath } from "../volumes/sub-path.ts";
import type { SetUpVolume } from "../volumes/volume.ts";

/** The state of a Pod that the mounts of its containers depend on. */
export interface MountSettings {
  podDir: string;
  podIps: readonly string[];
  clusterDomain: string;
  volumes: ReadonlyMap<string, SetUpVolume>;
  environment: ReadonlyMap<string, string>;
  mounter: Mounter;
}

const propagations: Readonly<Record<string, number>> = { None: 0, HostToContainer: 1, Bidirectional: 2 };
const hostsPath = "/etc/hosts";

/**
 * The mounts of a container: volumes and subPaths, /etc/hosts, and the termination message file.
 * @throws Error whose message becomes that of CreateContainerConfigError
 * Source: pkg/kubelet/kubelet_pods.go makeMounts
 */
export async function containerMounts(
  pod: NodePod,
  container: AnyContainer,
  settings: MountSettings,
): Promise<CriInput<"Mount">[]> {
  const mounts: CriInput<"Mount">[] = [];
  let index = -1;
  let hasHosts = false;
  for (const mount of container.volumeMounts ?? []) {
    index++;
    hasHosts ||= mount.mountPath === hostsPath;
    const volume = settings.volumes.get(mount.name);
    if (volume === undefined || volume.device === true) {
      throw new Error(
        `cannot find volume ${JSON.stringify(mount.name)} to mount into container ${JSON.stringify(container.name)}`,
      );
    }
    const subPath = mount.subPathExpr ? expandSubPath(mount.subPathExpr, settings.environment) : (mount.subPath ?? "");
    let hostPath = volume.path;
    if (subPath !== "") {
      const problem = checkSubPath(subPath);
      if (problem !== undefined) throw new Error(problem);
      const target = join(settings.podDir, "volume-subpaths", mount.name, container.name, String(index));
      // The cause is not part of the message: it would reveal which files exist on the host.
      const failed = (to: string) => (err: unknown) => {
        const what = `volumeMount ${JSON.stringify(mount.name)} of container ${JSON.stringify(container.name)}`;
        throw new Error(`failed to ${to} for ${what}`, { cause: err });
      };
      await makeSubPath(volume.path, subPath).catch(failed("create subPath directory"));
      hostPath = await bindSubPath(volume.path, subPath, target, settings.mounter).catch(failed("prepare subPath"));
    }
    mounts.push({
      containerPath: mount.mountPath.startsWith("/") ? mount.mountPath : `/${mount.mountPath}`,
      hostPath,
      readonly: mount.readOnly === true || volume.readOnly,
      propagation: propagations[mount.mountPropagation ?? "None"] ?? 0,
      selinuxRelabel: false,
    });
  }
  if (!hasHosts && (settings.podIps.length > 0 || pod.spec.hostNetwork)) {
    const hostPath = join(settings.podDir, "etc-hosts");
    await writeHostsFile(hostPath, pod, settings.podIps, settings.clusterDomain);
    mounts.push({ containerPath: hostsPath, hostPath, readonly: false, selinuxRelabel: false });
  }
  if (container.terminationMessagePath) {
    const folder = join(settings.podDir, "containers", container.name);
    await makeFolder(folder, 0o750);
    const hostPath = join(folder, randomBytes(4).toString("hex"));
    await writeFile(hostPath, "");
    await chmod(hostPath, 0o666); // writable for any container user
    mounts.push({ containerPath: container.terminationMessagePath, hostPath, readonly: false, selinuxRelabel: false });
  }
  return mounts;
}

/**
 * The block devices of a container (volumeMode Block).
 * @throws Error whose message becomes that of CreateContainerConfigError
 * Source: pkg/kubelet/kubelet_pods.go makeBlockVolumes
 */
export function containerDevices(
  container: AnyContainer,
  volumes: ReadonlyMap<string, SetUpVolume>,
): { hostPath: string; containerPath: string; permissions: string }[] {
  return (container.volumeDevices ?? []).map(({ name, devicePath }) => {
    const volume = volumes.get(name);
    if (volume?.device !== true) {
      throw new Error(`cannot find volume ${JSON.stringify(name)} to pass into container ${JSON.stringify(container.name)}`);
    }
    return { hostPath: volume.path, containerPath: devicePath, permissions: volume.readOnly ? "r" : "mrw" };
  });
}

function expandSubPath(expression: string, environment: ReadonlyMap<string, string>): string {
  const missing = new Set<string>();
  const text = expand(expression, (name) => {
    const value = environment.get(name);
    if (!value) missing.add(name); // an empty value would select another path than intended
    return value;
  });
  if (missing.size > 0) throw new Error(`missing value for ${[...missing].sort().join(", ")}`);
  return text;
}
