import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeFolderSync } from "@coxswain/apimachinery/process/files/make-folder";
import { cniConfig } from "@coxswain/cluster-services/pod-network/cni-config";
import { configFile } from "@coxswain/cluster-services/pod-network/names";
import { parseNetwork } from "@coxswain/cluster-services/pod-network/networks";
import { localImages, pauseImage } from "@coxswain/images/busybox";
import { imageArchive } from "@coxswain/images/oci";
import { exec, need } from "./commands.ts";
import { servicePartsOf } from "./service-parts.ts";
import { type Settings, withExtraArgs } from "./settings.ts";
import type { ProcessSpec } from "./supervisor-state.ts";

export const containerdSocket = (settings: Settings): string => join(settings.run, "containerd.sock");

/** A containerd for this cluster only: root, state, socket and CNI configuration are in the cluster's folders. */
export function containerdProcess(settings: Settings): ProcessSpec {
  const args = withExtraArgs([`--config=${containerdConfig(settings)}`], settings.extraArgs.containerd);
  return { name: "containerd", command: need("containerd", "containerd"), args };
}

/** Writes containerd's configuration and the CNI network into the cluster's folders; to be called before each start. */
export function writeContainerdConfig(settings: Settings): void {
  const folder = join(settings.state, "containerd");
  const network = cniFolder(settings);
  makeFolderSync(network);
  makeFolderSync(settings.run, 0o711);
  const text = JSON.stringify;
  writeFileSync(
    containerdConfig(settings),
    `version = 2
root = ${text(join(folder, "root"))}
state = ${text(join(settings.run, "containerd"))}
[grpc]
  address = ${text(containerdSocket(settings))}
[plugins."io.containerd.internal.v1.opt"]
  path = ${text(join(folder, "opt"))}
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = ${text(pauseImage)}
  netns_mounts_under_state_dir = true
  restrict_oom_score_adj = ${!hasCapability(readFileSync("/proc/self/status", "utf8"), 24 /* CAP_SYS_RESOURCE */)}
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = ${text(cniPlugins)}
    conf_dir = ${text(network)}
`,
  );
  writeNetworkConfig(settings);
}

export const cniPlugins = "/usr/lib/cni";
export const cniFolder = (settings: Settings): string => join(settings.state, "containerd", "net.d");
export const cniDataFolder = (settings: Settings): string => join(settings.state, "containerd", "ipam");
export const networkName = (settings: Settings): string => `cox-${settings.id}`;

/**
 * Writes the CNI configuration. With the part pod-network this is the file that coxswain-services would write once the node has its
 * range: the range is known beforehand, and with the file the node is ready earlier.
 */
function writeNetworkConfig(settings: Settings): void {
  const own = join(cniFolder(settings), configFile);
  const fixed = join(cniFolder(settings), "10-cox.conflist");
  const range = parseNetwork(settings.podCidr);
  const isOwn = servicePartsOf(settings).includes("pod-network") && range !== undefined;
  rmSync(isOwn ? fixed : own, { force: true }); // of an earlier `up` with other parts
  if (isOwn) {
    const network = { name: networkName(settings), bridge: settings.bridge, dataFolder: cniDataFolder(settings) };
    writeFileSync(own, cniConfig([range], mtu, network));
  } else writeFileSync(fixed, JSON.stringify(fixedNetwork(settings), undefined, 2));
}

/** As coxswain-services chooses it where no interface of the machine has the node's address. */
const mtu = 1500;

/** CNI configuration without coxswain-services. Source: the CNI plugins bridge, host-local and portmap. */
function fixedNetwork(settings: Settings): unknown {
  return {
    cniVersion: "0.4.0",
    name: networkName(settings),
    plugins: [
      {
        type: "bridge",
        bridge: settings.bridge,
        isGateway: true,
        ipMasq: true,
        hairpinMode: true,
        ipam: {
          type: "host-local",
          dataDir: cniDataFolder(settings),
          ranges: [[{ subnet: settings.podCidr, gateway: settings.podGateway }]],
          routes: [{ dst: "0.0.0.0/0" }],
        },
      },
      { type: "portmap", capabilities: { portMappings: true }, snat: true },
    ],
  };
}

/** Imports the locally built images, once per state folder. */
export async function importImages(settings: Settings): Promise<void> {
  const busybox = need("busybox", "busybox-static");
  const ctr = (...args: string[]): Promise<string> =>
    exec(need("ctr", "containerd"), ["--address", containerdSocket(settings), "--namespace", "k8s.io", ...args]);
  const present = new Set((await ctr("images", "list", "--quiet")).split("\n"));
  for (const image of localImages(busybox)) {
    if (image.names.every((name) => present.has(name))) continue;
    const archive = join(settings.state, "image.tar");
    writeFileSync(archive, imageArchive(image));
    await ctr("images", "import", archive);
    rmSync(archive);
  }
}

/** Pure: whether a process has a capability. @param status its /proc/<pid>/status. Source: capabilities(7) for the numbers */
export function hasCapability(status: string, bit: number): boolean {
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? "0";
  return ((BigInt(`0x${effective}`) >> BigInt(bit)) & 1n) === 1n;
}

const containerdConfig = (settings: Settings): string => join(settings.state, "containerd", "config.toml");
