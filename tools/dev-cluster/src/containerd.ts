import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeFolderSync } from "@coxswain/apimachinery/files/make-folder";
import { localImages, pauseImage } from "@coxswain/images/busybox";
import { imageArchive } from "@coxswain/images/oci";
import { exec, need } from "./commands.ts";
import { type Settings, withExtraArgs } from "./settings.ts";
import type { ProcessSpec } from "./supervisor-state.ts";

export const containerdSocket = (settings: Settings): string => join(settings.run, "containerd.sock");

/** A containerd for this cluster only: root, state, socket and CNI configuration are in the cluster's folders. */
export function containerdProcess(settings: Settings): ProcessSpec {
  const args = withExtraArgs([`--config=${configFile(settings)}`], settings.extraArgs.containerd);
  return { name: "containerd", command: need("containerd", "containerd"), args };
}

export function writeContainerdConfig(settings: Settings): void {
  const folder = join(settings.state, "containerd");
  const network = join(folder, "net.d");
  makeFolderSync(network);
  makeFolderSync(settings.run, 0o711);
  const text = JSON.stringify;
  writeFileSync(
    configFile(settings),
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
  restrict_oom_score_adj = ${!hasCapability(24 /* CAP_SYS_RESOURCE */)}
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = ${text(network)}
`,
  );
  writeFileSync(join(network, "10-cox.conflist"), JSON.stringify(networkConfig(settings), undefined, 2));
}

/** CNI configuration. Source: the CNI plugins bridge, host-local and portmap. */
function networkConfig(settings: Settings): unknown {
  return {
    cniVersion: "0.4.0",
    name: `cox-${settings.id}`,
    plugins: [
      {
        type: "bridge",
        bridge: settings.bridge,
        isGateway: true,
        ipMasq: true,
        hairpinMode: true,
        ipam: {
          type: "host-local",
          dataDir: join(settings.state, "containerd", "ipam"),
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

function hasCapability(bit: number): boolean {
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? "0";
  return ((BigInt(`0x${effective}`) >> BigInt(bit)) & 1n) === 1n;
}

const configFile = (settings: Settings): string => join(settings.state, "containerd", "config.toml");
